package main

type demoCmd struct{}
type runCmd struct{}
type matrixCmd struct{}
type labCmd struct{}
type scanCmd struct{}
type labNodeCmd struct{}

func (demoCmd) Run() error { return nil }
func (runCmd) Run() error { return nil }
func (matrixCmd) Run() error { return nil }
func (labCmd) Run() error { return nil }
func (scanCmd) Run() error { return nil }
func (labNodeCmd) Run() error { return nil }

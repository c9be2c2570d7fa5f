package main

type matrixCmd struct{}

func (matrixCmd) Run() error { return nil }

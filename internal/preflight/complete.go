package preflight

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kvcanary/kvcanary/internal/engine"
)

// complete takes a router's workers for workers, judges what is declared where
// nothing runs, and fills gaps with what is declared and what the operator says.
func (d Deployment) complete() Deployment {
	var all []Worker
	for _, w := range d.Workers {
		all = append(all, w)
		for _, b := range w.Facts.Behind {
			b.Router = engine.Flag{}
			all = append(all, Worker{Name: fmt.Sprintf("%s (%s)", w.Name, b.Role.Value), Facts: b, Via: w.Name})
		}
	}
	standing, unasked := d.match(all)
	d.Workers, d.Declared = append(all, unasked...), standing
	for i := range d.Workers {
		w := &d.Workers[i]
		if from := d.declared(w); from != nil {
			fill(&w.Facts, from.Facts)
		}
		given(&w.Facts.Context, d.Context, "--context")
		given(&w.Facts.Pool, d.Pool, "--pool")
	}
	return d
}

// match tells the declared workers that some of those that run stand for from
// those that nobody asked: what is given is judged, whether it runs or not.
func (d *Deployment) match(running []Worker) (standing, unasked []Worker) {
	for i := range running {
		c := d.declared(&running[i])
		if c != nil && !slices.ContainsFunc(standing, func(o Worker) bool { return alike(&o, c) }) {
			standing = append(standing, *c)
		}
	}
	for i := range d.Declared {
		c := &d.Declared[i]
		if !slices.ContainsFunc(standing, func(o Worker) bool { return alike(&o, c) }) {
			unasked = append(unasked, *c)
		}
	}
	return standing, unasked
}

// alike reports whether two manifests declare the same of a worker, as those
// of a leader and its followers do.
func alike(a, b *Worker) bool {
	if a.Facts.Engine != b.Facts.Engine {
		return false
	}
	x, y := reflect.ValueOf(a.Facts), reflect.ValueOf(b.Facts)
	for i := range x.NumField() {
		if !reflect.DeepEqual(sourceless(x.Field(i).Interface()), sourceless(y.Field(i).Interface())) {
			return false
		}
	}
	return true
}

func sourceless(fact any) any {
	switch f := fact.(type) {
	case engine.Number:
		f.Source = ""
		return f
	case engine.Text:
		f.Source = ""
		return f
	case engine.Flag:
		f.Source = ""
		return f
	}
	return fact
}

// given takes a number that the operator says, where nothing better is known.
func given(n *engine.Number, value int, flag string) {
	if value > 0 && (n.Value == 0 || n.AtMost && value <= n.Value) {
		*n = engine.Number{Value: value, Source: flag, Basis: engine.Stated}
	}
}

// declared is the only declared worker that w can be, nil if there is none or
// more than one.
func (d *Deployment) declared(w *Worker) *Worker {
	var found *Worker
	for i := range d.Declared {
		c := &d.Declared[i]
		if c.Facts.Engine != w.Facts.Engine || c.role() != w.role() && c.role() != "" && w.role() != "" {
			continue
		}
		if found != nil && alike(found, c) {
			continue
		}
		if found != nil {
			return nil
		}
		found = c
	}
	return found
}

// fill takes over every single fact that is not known yet.
func fill(to *engine.Facts, from engine.Facts) {
	dst, src := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range dst.NumField() {
		switch dst.Field(i).Interface().(type) {
		case engine.Number, engine.Text, engine.Flag:
			if dst.Field(i).IsZero() {
				dst.Field(i).Set(src.Field(i))
			}
		}
	}
}

package main

import (
	"path/filepath"

	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
)

// addCommandsHere adds to the failed runs of a table the commands that train one of them alone. dir is the folder of
// the runs, and spec the file of the spec if the command was given it.
func addCommandsHere(t *tables.Table, l *experiment.Layout, dir, spec string) {
	base := filepath.Dir(dir)
	switch in := l.Inputs; {
	case in != nil && in.Data != "":
		base = in.Data
	case spec != "":
		base = filepath.Dir(spec)
	case in != nil && in.Spec != "":
		base = in.Spec
	}
	l.AddCommands(t, experiment.Sources{File: func(path string) string {
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		return experiment.ShownPath(path)
	}})
}

package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/submission"
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
		return shownPath(path)
	}})
}

// addCommandsThere is addCommandsHere for an experiment on a cluster. It knows the folder of the spec only if spec is
// set, or if the experiment was submitted with --data.
func addCommandsThere(a *app, cl *client.Client, e *submission.Experiment, t *tables.Table, l *experiment.Layout, spec string, f *serverFlags) error {
	if experiment.Count(t).Failed == 0 {
		return nil
	}
	list, err := cl.Datasets(a.ctx)
	if err != nil {
		return err
	}
	digests := make(map[string]string)
	for i := range list {
		digests[list[i].Name] = list[i].Digest
	}
	at := experiment.Sources{Sets: e.Sets(t, func(name string) string { return digests[name] }), File: func(path string) string {
		switch {
		case filepath.IsAbs(path):
		case t.Spec != nil && t.Spec.Data != "":
			path = filepath.Join(t.Spec.Data, path)
		case spec != "":
			path = filepath.Join(filepath.Dir(spec), path)
		default:
			return ""
		}
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return shownPath(path)
	}}
	if a.given["server"] {
		at.Flags = []string{"--server", strings.Join(f.Server, ",")}
	}
	l.AddCommands(t, at)
	return nil
}

// shownPath returns a path as a command that is run in this folder may name it.
func shownPath(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, whole); err == nil && filepath.IsLocal(short) {
			return short
		}
	}
	return whole
}

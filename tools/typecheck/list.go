package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// listed is a package as go list tells of it.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	SFiles     []string          // in assembly
	ImportMap  map[string]string // from what a file says to the path of the package
	DepOnly    bool              // only imported by what was asked for
	Module     *struct{ GoVersion string }
}

// paths are the paths of its Go files.
func (l *listed) paths() []string {
	var all []string
	for _, name := range l.GoFiles {
		all = append(all, filepath.Join(l.Dir, name))
	}
	return all
}

// goVersion is the version of the language that the package is written in; empty for the newest.
func (l *listed) goVersion() string {
	if l.Module == nil || l.Module.GoVersion == "" {
		return ""
	}
	return "go" + l.Module.GoVersion
}

// list returns the packages that patterns name, seen from a folder, and those that they import:
// each after what it imports.
func list(dir, system, architecture string, patterns []string) ([]*listed, error) {
	const fields = "-json=ImportPath,Dir,GoFiles,SFiles,ImportMap,DepOnly,Module"
	cmd := exec.Command("go", append([]string{"list", "-deps", fields, "--"}, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	all, err := decode(out)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return all, nil
}

func decode(r io.Reader) (all []*listed, err error) {
	for d := json.NewDecoder(r); ; {
		var l listed
		if err := d.Decode(&l); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, &l)
	}
}

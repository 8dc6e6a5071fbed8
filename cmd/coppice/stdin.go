package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/tempdir"
)

// stdinName stands for stdin in the place of a data file.
const stdinName = "-"

// dataFile returns the path of a command's data. Stdin is copied into a temporary
// file, since data is read twice; it goes when the command ends.
func (a *app) dataFile(path string, o *dataset.OpenOptions) (string, error) {
	if path != stdinName {
		return path, nil
	}
	if o.Format == "" {
		return "", usagef("- is stdin, whose format is unknown; give --data-format with one of %s", strings.Join(dataset.Formats(), ", "))
	}
	dir, err := tempdir.Make("stdin")
	if err != nil {
		return "", err
	}
	a.atEnd = append(a.atEnd, func() { dir.Remove() })
	f, err := os.Create(filepath.Join(dir.Path, "data"))
	if err != nil {
		return "", err
	}
	o.Called = "stdin"
	if err := a.spool(f); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// spool copies stdin to f, and closes f, until an interrupt ends that.
func (a *app) spool(f *os.File) error {
	m := newMeter(a.stderr)
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(f, &counted{a.stdin, m, 0})
		if closed := f.Close(); err == nil {
			err = closed
		}
		done <- err
	}()
	select {
	case err := <-done:
		m.clear()
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

// counted shows how much was read.
type counted struct {
	io.Reader
	m *meter
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.m.show("reading stdin: " + size(c.n))
	return n, err
}

// end removes what the command made for itself.
func (a *app) end() {
	for _, f := range a.atEnd {
		f()
	}
}

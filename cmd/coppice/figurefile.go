package main

import (
	"io"
	"path/filepath"
	"strings"

	figures "github.com/coppice-ldl/coppice/experiment/figure"
)

// figureFile is a file that a figure goes to.
type figureFile struct {
	output
	put func(f *figures.Figure, w io.Writer) error
}

// createFigure begins the file of a figure, whose name says whether it is SVG or PNG.
func createFigure(flag, path string) (*figureFile, error) {
	var put func(*figures.Figure, io.Writer) error
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		put = (*figures.Figure).SVG
	case ".png":
		put = (*figures.Figure).PNG
	default:
		return nil, usagef("%s %s: the name of a figure's file must end in .svg or .png", flag, path)
	}
	out, err := createFile(path)
	if err != nil {
		return nil, err
	}
	return &figureFile{out, put}, nil
}

// draw writes the figure and gives the file its name.
func (f *figureFile) draw(of *figures.Figure) error {
	if err := f.put(of, f); err != nil {
		return err
	}
	return f.commit()
}

package main

import (
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// curveOut is where --curve-out writes; nil writes nothing.
type curveOut struct {
	file *outFile
	path string
}

// createCurve begins the file of a curve.
func createCurve(path string) (*curveOut, error) {
	if path == "" {
		return nil, nil
	}
	if path != stdoutName && !strings.HasSuffix(strings.ToLower(path), ".csv") && !isDevice(path) {
		return nil, usagef("--curve-out %s: a learning curve is written as CSV, so the name must end in .csv", path)
	}
	f, err := createFile(path)
	if err != nil {
		return nil, err
	}
	return &curveOut{f, path}, nil
}

func (c *curveOut) discard() {
	if c != nil {
		c.file.discard()
	}
}

// write writes the curve of a result and notes in it where.
func (c *curveOut) write(r *result) error {
	if c == nil {
		return nil
	}
	r.Curve = c.path
	if err := writeCurve(c.file, r.Line.Points, r.Line.Folds); err != nil {
		return err
	}
	return c.file.commit()
}

// lineOf is the curve of a job that ran in this process.
func lineOf(o *pipeline.Outcome) *protocol.JobCurve {
	line := &protocol.JobCurve{Points: []curve.Point{}}
	if o.Curve != nil {
		line.Points = o.Curve.Points()
	}
	for _, f := range o.Folds {
		points := []curve.Point{}
		if f.Curve != nil {
			points = f.Curve.Points()
		}
		line.Folds = append(line.Folds, points)
	}
	return line
}

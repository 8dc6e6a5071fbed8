package read

import "github.com/coppice-ldl/coppice/dataset"

// pipeline is a Source of the rows of a reader after some steps, in order: missing values, labels, images, names, and
// the columns of a model. It does not change: after and described return others.
type pipeline struct {
	reader dataset.Source
	steps  []step
	info   dataset.Info // of the rows after the last step

	place  func(error) error // changes an error about a row that the caller of Scan returned; nil: nothing
	advise func(error) error // adds to an error that the caller of Scan did not return; nil: nothing
}

// step begins a scan. It returns what changes each row of the scan, and what ends the scan after the rows or an error, or
// nil. The change is in place, but what the slices of the row hold belongs to the reader.
type step func() (change func(*dataset.Row) error, end func(error) error, err error)

// simple is a step that needs no end and cannot fail to begin.
func simple(begin func() func(*dataset.Row) error) step {
	return func() (func(*dataset.Row) error, func(error) error, error) { return begin(), nil, nil }
}

func pipelineOf(src dataset.Source) *pipeline {
	if p, ok := src.(*pipeline); ok {
		return p
	}
	return &pipeline{reader: src, info: src.Info()}
}

// after returns a pipeline with one more step, and what it makes of the rows.
func (p *pipeline) after(s step, info dataset.Info) *pipeline {
	next := *p
	next.steps, next.info = append(p.steps[:len(p.steps):len(p.steps)], s), info
	return &next
}

// described returns a pipeline of the same rows with another description.
func (p *pipeline) described(info dataset.Info) *pipeline {
	next := *p
	next.info = info
	return &next
}

// Info describes the rows.
func (p *pipeline) Info() dataset.Info { return p.info }

// Scan implements Source.
func (p *pipeline) Scan(f func(*dataset.Row) error) (err error) {
	var changes []func(*dataset.Row) error
	var failed error // of f
	defer func() {
		if err != nil && failed == nil && p.advise != nil {
			err = p.advise(err)
		}
	}()
	for _, begin := range p.steps {
		change, end, failure := begin()
		if failure != nil {
			return failure
		}
		if changes = append(changes, change); end != nil {
			defer func() { err = end(err) }()
		}
	}
	var row dataset.Row
	return p.reader.Scan(func(r *dataset.Row) error {
		row = *r
		for _, change := range changes {
			if err := change(&row); err != nil {
				return err
			}
		}
		if failed = f(&row); failed != nil && p.place != nil {
			failed = p.place(failed)
		}
		return failed
	})
}

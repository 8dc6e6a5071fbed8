package main

import (
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// tested is the number of rows that were held out, in all folds together.
func (r *result) tested() int {
	if len(r.Folds) == 0 {
		return r.Rows.Test
	}
	n := 0
	for _, f := range r.Folds {
		n += f.Rows.Test
	}
	return n
}

// heldOut lists the rows that were held out, by their numbers in the file.
func (r *result) heldOut(j *round.Job, m *dataset.Manifest, assigned []uint16) (err error) {
	if r.Rows.Test == 0 {
		return nil
	}
	kept := m.FileRow()
	if len(r.Folds) == 0 {
		r.HeldOut, err = heldOutRows(j.Split, m.Rows, kept, assigned)
		return err
	}
	for i := range r.Folds {
		if r.Folds[i].HeldOut, err = heldOutRows(pipeline.SubJob(j, i).Split, m.Rows, kept, assigned); err != nil {
			return err
		}
	}
	return nil
}

// heldOutRows lists the test rows of a split; kept is what Manifest.FileRow gives.
func heldOutRows(s dataset.Split, rows int, kept []int, assigned []uint16) (list []int, err error) {
	roles, err := s.Assign(rows, assigned)
	for row, role := range roles {
		if role != dataset.Test {
			continue
		}
		if kept != nil {
			row = kept[row]
		}
		list = append(list, row)
	}
	return list, err
}

// addHeldOut is heldOut for a job of a cluster; only JSON has the rows. Of a
// dataset that was deleted, it is not known which rows of the file it had.
func (r *result) addHeldOut(a *app, cl *client.Client, j *protocol.JobInfo) error {
	if a.output == outputText || r.Rows.Test == 0 {
		return nil
	}
	set, err := cl.Dataset(a.ctx, j.Dataset)
	if client.IsNotFound(err) || err == nil && set.Digest != j.Job.Dataset {
		a.note("the result lacks the key held_out (the rows held out for testing), because dataset %s was deleted together with the row numbers of its file", j.Dataset)
		return nil
	}
	if err != nil {
		return err
	}
	assigned, err := assignedFolds(a, cl, j.Job, set.Manifest)
	if err != nil {
		return err
	}
	return r.heldOut(j.Job, set.Manifest, assigned)
}

// assignedFolds reads the list of folds of a job that was given one.
func assignedFolds(a *app, cl *client.Client, j *round.Job, m *dataset.Manifest) ([]uint16, error) {
	if j.Split.Assigned == "" {
		return nil, nil
	}
	b, err := cl.Blob(a.ctx, j.Split.Assigned)
	if err != nil {
		return nil, err
	}
	return j.Split.Decode(b, m.Rows)
}

package modelcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// trainThere trains on a cluster as the job says, and deletes the job. The dataset stays there. reason says why the
// cluster would train another model.
func (c *verifyCmd) trainThere(a *cli.App, digest string, j *round.Job, data *local.Data) (o *pipeline.Outcome,
	reason errtext.Text, err error) {
	s := specOf(j, data.Manifest)
	resolved, err := spec.Resolve(s, data.Manifest)
	if err != nil {
		return nil, "", err
	}
	if key := otherKey(j, resolved); key != "" {
		return nil, errtext.Sprintf("a job on a cluster would differ from its job in %q; give {local}", key), nil
	}
	cl, err := c.Connect(a)
	if err != nil {
		return nil, "", err
	}
	if s.Dataset, err = c.imported(a, cl); err != nil {
		return nil, "", err
	}
	if s.Name, err = freeName(a, cl, "verify-"+digest[:12]); err != nil {
		return nil, "", err
	}
	var sent [][]byte
	if s.Assigned != "" {
		sent = append(sent, dataset.EncodeFolds(data.Assigned))
	}
	if len(data.Weights) > 0 {
		sent = append(sent, data.Weights)
	}
	var submitted *protocol.JobInfo
	err = cl.Blobs().Sending(a.Ctx, sent, func() error {
		submitted, err = cl.Jobs().SubmitRequest(a.Ctx, protocol.SubmitRequest{Spec: s})
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil, "", cli.Interrupted("interrupted; the job may have been submitted: see coppice job list")
	}
	if err != nil {
		return nil, "", err
	}
	cl.Faithful = true // the cluster keeps the job, however long it is away
	job, err := jobcmd.Watch(a, cl, submitted)
	if errors.Is(err, context.Canceled) {
		err = jobcmd.Withdraw(a, cl, submitted, c.Wait)
	}
	if err != nil {
		return nil, "", err
	}
	if _, o, err = results.Finished(job); err != nil {
		return nil, "", err
	}
	jobcmd.WarnSuspect(a, job)
	_, err = cl.Jobs().Delete(a.Ctx, strconv.FormatUint(job.ID, 10))
	return o, "", err
}

// imported imports the data file, or finds its dataset on the cluster, and returns the name.
func (c *verifyCmd) imported(a *cli.App, cl *client.Client) (string, error) {
	src, checks, err := c.Open(a, c.Data)
	if err != nil {
		return "", err
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	defer m.Clear()
	set, err := cl.Datasets().ImportFree(a.Ctx, protocol.DatasetPut{Name: dataflags.DatasetName(c.Data)}, src,
		m.Reading(a.Ctx, "importing data", checks))
	if err != nil {
		return "", err
	}
	return set.Name, nil
}

// freeName returns a name that no job has.
func freeName(a *cli.App, cl *client.Client, name string) (string, error) {
	for n := 1; ; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s-%d", name, n)
		}
		switch _, err := cl.Jobs().Get(a.Ctx, free); {
		case client.IsNotFound(err):
			return free, nil
		case err != nil:
			return "", err
		}
	}
}

// specOf returns the spec whose job is j, without the name of the dataset.
func specOf(j *round.Job, m *dataset.Manifest) protocol.Spec {
	seed, none := j.Seed, int64(0)
	s := protocol.Spec{
		Algorithm: j.Algorithm, Seed: &seed, TestFraction: j.Split.TestFraction, TrainFraction: j.Split.TrainFraction,
		Folds: j.Split.Folds, Assigned: j.Split.Assigned, Overlap: j.Split.Overlap, KeepPredictions: &none,
		Measures: j.Measures, Clip: j.Clip, Mask: j.Split.Mask.String(), Set: make(map[string]string),
	}
	if s.Measures == pipeline.EveryMeasures {
		s.Measures = ""
	}
	if s.Folds > 0 {
		s.Fold = &j.Split.Fold
	}
	if g := m.Groups; g != nil && s.Assigned == g.Digest && !s.Overlap {
		s.Assigned, s.Folds, s.GroupFolds = "", 0, true
	}
	if e := j.Enhance; e != nil {
		s.Enhance, s.Normalise, s.Binarise = e.Method, e.Normalise, &e.Binarise
	}
	for _, p := range spec.Settings(j.Params) {
		s.Set[p.Key] = p.Value
	}
	return s
}

// otherKey returns the first key of a job's JSON that decides the model and differs between two jobs; empty: none.
func otherKey(a, b *round.Job) string {
	var keys [2]map[string]json.RawMessage
	for i, j := range []*round.Job{a, b} {
		of := *j
		of.Predictions, of.PredictedRows, of.LinearSamples, of.NoModel, of.Measures, of.Clip = 0, 0, 0, false, "", ""
		text, err := json.Marshal(&of)
		if err != nil || json.Unmarshal(text, &keys[i]) != nil {
			return "settings"
		}
	}
	for _, key := range []string{"algorithm", "seed", "dataset", "split", "folds", "fill", "enhance", "bounds", "settings",
		"weights", "numerics", "runs", "cells"} {
		if string(keys[0][key]) != string(keys[1][key]) {
			return key
		}
	}
	return ""
}

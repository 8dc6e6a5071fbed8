package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
)

// initFrom returns what a spec's init_from names; "": nothing.
func initFrom(file *spec.File) string {
	if from := file.Spec.Set[network.SettingInitFrom]; from != "none" {
		return from
	}
	return ""
}

// readWeights reads the weights that a spec's init_from names, and has the spec name them by their
// digest. Without a cluster it is a file. It returns nil where nothing is named.
func readWeights(a *app, cl *client.Client, file *spec.File) (*network.Weights, error) {
	from := initFrom(file)
	if from == "" {
		return nil, nil
	}
	w, err := findWeights(a, cl, from)
	if err != nil {
		return nil, file.Locate(param.Errorf(network.SettingInitFrom, "%s: %v", from, err))
	}
	file.Spec.Set[network.SettingInitFrom] = w.Digest
	return w, nil
}

// findWeights reads a file, or else a model of the cluster, or weights that were sent to it before.
func findWeights(a *app, cl *client.Client, from string) (*network.Weights, error) {
	b, err := os.ReadFile(from)
	switch {
	case err == nil:
		return network.ReadWeights(b)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case cl == nil:
		return nil, errors.New("no such file")
	}
	b, err = cl.Model(a.ctx, from)
	switch {
	case err == nil:
		return network.ReadWeights(b)
	case !client.IsNotFound(err):
		return nil, err
	}
	if b, sent := cl.Blob(a.ctx, from); sent == nil {
		return network.DecodeWeights(b)
	}
	return nil, fmt.Errorf("there is no such file, and no such model of the cluster: %w", err)
}

// checkWeights returns an error that names a line of the spec where the weights are not of the
// job's network.
func checkWeights(w *network.Weights, j *round.Job, m *dataset.Manifest, file *spec.File) error {
	if w == nil {
		return nil
	}
	with, err := j.WithWeights(w.File)
	if err == nil {
		err = pipeline.FitsWeights(with, m)
	}
	return file.Locate(err)
}

// sendWeights checks the weights of a job and puts them on the cluster.
func sendWeights(a *app, cl *client.Client, w *network.Weights, j *round.Job, m *dataset.Manifest, file *spec.File) error {
	if w == nil {
		return nil
	}
	if err := checkWeights(w, j, m, file); err != nil {
		return err
	}
	_, err := cl.PutBlob(a.ctx, w.File)
	return err
}

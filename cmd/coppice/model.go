package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

type modelCmd struct {
	List     modelListCmd     `cmd:"" help:"List the models of a cluster."`
	Show     modelShowCmd     `cmd:"" help:"Describe a model file, or a model of a cluster."`
	Download modelDownloadCmd `cmd:"" help:"Write a model of a cluster to a file."`
	Delete   modelDeleteCmd   `cmd:"" help:"Delete a model of a cluster; its job and the result are kept."`
}

type modelListCmd struct {
	Limit int `default:"100" placeholder:"N" help:"List only the N newest models. 0: all models."`

	serverFlags
}

// models asks for the models to list, and for one more, which tells that there are more.
func (c *modelListCmd) models(a *app, cl *client.Client) ([]protocol.ModelInfo, error) {
	if c.Limit == 0 || c.Limit == math.MaxInt {
		return cl.Models(a.ctx)
	}
	return cl.NewestModels(a.ctx, c.Limit+1)
}

// Run implements `coppice model list`.
func (c *modelListCmd) Run(a *app) error {
	if c.Limit < 0 {
		return usagef("--limit %d: want 0 (all) or more", c.Limit)
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	models, err := c.models(a, cl)
	if err != nil {
		return err
	}
	if c.Limit > 0 && len(models) > c.Limit {
		models = models[len(models)-c.Limit:]
		defer a.note("the newest %s; --limit 0 lists all", plural(c.Limit, "model"))
	}
	if models == nil {
		models = []protocol.ModelInfo{}
	}
	return a.print(models, func(w io.Writer) {
		t := newTable(w, []string{"name", "job", "algorithm", "dataset", "size", "trained", "digest"}, 2, 5)
		for _, m := range models {
			t.AppendRow(rowOf(m.Name, fmt.Sprint(m.Job), m.Algorithm, m.Dataset, size(int64(m.Bytes)), clock(m.Time), short(m.Digest)))
		}
		t.Render()
	})
}

type modelShowCmd struct {
	Model string `arg:"" placeholder:"FILE|NAME" help:"Model file, or model of the cluster: the name of its job, or job/fold."`
	Tree  *int   `placeholder:"N" help:"Print tree N of a forest of decision trees, counted from 0, instead of the description."`

	serverFlags
}

// forest is a model of decision trees that can be read.
type forest interface {
	TreeText(n int, featureNames, labelNames []string) (string, error)
}

// tree prints one tree of a model.
func (c *modelShowCmd) tree(a *app, m *model) error {
	f, ok := m.Model.(forest)
	if !ok {
		return usagef("--tree: a model of %s has no decision trees", m.file.Algorithm)
	}
	text, err := f.TreeText(*c.Tree, m.provenance.FeatureNames, m.provenance.LabelNames)
	if err != nil {
		return usageError{err}
	}
	v := struct {
		Tree int    `json:"tree"`
		Text string `json:"text"`
	}{*c.Tree, text}
	return a.print(v, func(w io.Writer) { io.WriteString(w, text) })
}

// Run implements `coppice model show`.
func (c *modelShowCmd) Run(a *app) error {
	m, name, err := c.load(a)
	if err != nil {
		return err
	}
	if c.Tree != nil {
		return c.tree(a, m)
	}
	s := m.shown(c.Model, name)
	return a.print(s, s.text)
}

// load reads the file of that name, or else the cluster's model, whose dataset
// has a name.
func (c *modelShowCmd) load(a *app) (m *model, dataset string, err error) {
	if _, err := os.Stat(c.Model); err == nil {
		m, err = openModel(c.Model)
		return m, "", err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	cl, err := c.guess(a)
	if err != nil {
		return nil, "", err
	}
	defer cl.Close()
	b, err := cl.Model(a.ctx, c.Model)
	if err != nil {
		return nil, "", fmt.Errorf("%s: there is no such file, and no such model of the cluster: %w", c.Model, err)
	}
	if m, err = decodeModel(b); err != nil {
		return nil, "", err
	}
	name, _, _ := strings.Cut(c.Model, "/")
	j, err := cl.Job(a.ctx, name)
	if client.IsNotFound(err) { // it is a digest
		return m, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	return m, j.Dataset, nil
}

type modelDownloadCmd struct {
	Name string `arg:"" help:"Name of the model: the name of its job, or job/fold."`
	Out  string `required:"" placeholder:"FILE" help:"File to write; - for stdout."`

	serverFlags
}

// Run implements `coppice model download`.
func (c *modelDownloadCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	out, err := a.createOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.discard()
	b, err := cl.Model(a.ctx, c.Name)
	if err != nil {
		return err
	}
	m, err := decodeModel(b)
	if err != nil {
		return err
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	r := struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
		Bytes  int    `json:"bytes"`
		Out    string `json:"out"`
	}{c.Name, m.file.Digest, len(b), c.Out}
	return a.printBeside(c.Out, r, func(w io.Writer) {
		fmt.Fprintf(w, "model %s (%s, digest %s): %s\n", r.Name, size(int64(r.Bytes)), short(r.Digest), outName(r.Out))
	})
}

package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/shellword"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// QuickstartCmd is `coppice quickstart`.
type QuickstartCmd struct {
	Dir          string `placeholder:"DIR" help:"Empty folder in which disks, logs and the model are kept (default: a temporary folder, which is deleted at the end)."`
	Coordinators int    `default:"3" help:"Number of coordinators: 1, 3 or 5."`
	Workers      int    `default:"4" help:"Workers."`
	Data         string `placeholder:"FILE" help:"Data to train on (default: the artificial set of Geng 2016, 2,500 samples)."`
	Steps        string `placeholder:"N" help:"Maximum number of steps (default: 1000)."`
	Stay         bool   `help:"Keep the cluster running until an interrupt (Ctrl-C)."`
	TLS          bool   `name:"tls" help:"Encrypt all connections. The certificates are in the folder certs of the cluster's folder (default: connections are not encrypted)."`

	dataflags.DataFlags
}

const (
	quickRows     = 2500
	quickSteps    = "1000"
	quickFraction = "0.1"
	quickReady    = 30 * time.Second
	quickTail     = 20 // lines of each log that a failure shows
)

// Run implements `coppice quickstart`.
func (c *QuickstartCmd) Run(a *cli.App) (err error) {
	file, src, checks, err := c.prepare(a)
	if err != nil {
		return err
	}
	dir, remove, err := c.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	q := &quickstart{App: a, dir: dir, start: time.Now()}
	if err := q.up(c); err != nil {
		return err
	}
	err = q.train(c, file, src, checks)
	if err == nil && c.Stay {
		q.Note("the cluster keeps running; an interrupt (Ctrl-C) stops it")
		<-a.Ctx.Done()
	}
	if err != nil && a.Ctx.Err() == nil {
		q.cluster.Tail(a.Stderr, quickTail)
	}
	return errors.Join(err, q.cluster.Close())
}

// prepare checks all flags before anything is started.
func (c *QuickstartCmd) prepare(a *cli.App) (*spec.File, dataset.Source, importer.Checks, error) {
	if n := c.Coordinators; n != 1 && n != 3 && n != 5 {
		return nil, nil, importer.Checks{}, cli.Usagef("--coordinators %d: want 1, 3 or 5", n)
	}
	if c.Workers < 1 || c.Workers > 64 {
		return nil, nil, importer.Checks{}, cli.Usagef("--workers %d: want 1 to 64", c.Workers)
	}
	if err := c.BelongTo(c.Data); err != nil {
		return nil, nil, importer.Checks{}, err
	}
	if c.Steps == "" {
		c.Steps = quickSteps
	}
	flags := jobcmd.SpecFlags{Dataset: "quickstart", Name: "quickstart", Steps: c.Steps, TestFraction: quickFraction}
	file, err := flags.Read()
	if err != nil || c.Data == "" {
		return file, generate.Artificial(quickRows, spec.DefaultSeed), importer.Checks{}, err
	}
	src, checks, err := c.Open(a, c.Data)
	return file, src, checks, err
}

// folder returns the folder to use, and a function that removes it.
func (c *QuickstartCmd) folder() (dir string, remove func() error, err error) {
	if c.Dir == "" {
		temp, err := tempdir.Make("quickstart")
		if err != nil {
			return "", nil, err
		}
		return temp.Path, temp.Remove, nil
	}
	if dir, err = filepath.Abs(c.Dir); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = cli.Usagef("--dir %s: the folder is not empty", c.Dir)
	}
	return dir, func() error { return nil }, err
}

// quickstart is one run of the command.
type quickstart struct {
	*cli.App
	dir     string
	start   time.Time
	cluster *proc.Cluster
}

func (q *quickstart) up(c *QuickstartCmd) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	config := proc.Config{Exe: exe, Dir: q.dir, Coordinators: c.Coordinators, Workers: c.Workers}
	if c.TLS {
		if config.Certificates, err = proc.NewCertificates(filepath.Join(q.dir, "certs")); err != nil {
			return err
		}
	}
	q.Note("starting %s and %s in %s", units.Plural(c.Coordinators, "coordinator"),
		units.Plural(c.Workers, "worker"), q.dir)
	ctx, cancel := context.WithTimeout(q.Ctx, quickReady)
	defer cancel()
	q.cluster, err = proc.Start(ctx, config)
	return err
}

// train imports, trains and prints the result.
func (q *quickstart) train(c *QuickstartCmd, file *spec.File, src dataset.Source, checks importer.Checks) error {
	cl := q.cluster.Client()
	m := progress.New(q.App)
	d, err := cl.Datasets().Import(q.Ctx, protocol.DatasetPut{Name: "quickstart"}, src,
		m.Reading(q.Ctx, "reading data", checks))
	m.Clear()
	if err != nil {
		return err
	}
	q.Note("imported the data: %s", d.Manifest)
	job, err := cl.Jobs().Submit(q.Ctx, file.Spec)
	if err != nil {
		return err
	}
	q.Note("training for at most %s steps; a tenth of the samples are held out for testing", c.Steps)
	connect.NotePage(q.App, cl, fmt.Sprintf("/jobs/%d", job.ID))
	m = progress.New(q.App)
	job, err = cl.Jobs().Watch(q.Ctx, strconv.FormatUint(job.ID, 10), m.Job) // interrupted, the job ends with its cluster
	m.Clear()
	if err != nil {
		return err
	}
	r, _, err := results.Finished(job)
	if err != nil {
		return err
	}
	r.SetDataset(d.Manifest)
	r.Predictions = "" // they end with the cluster
	if c.Dir != "" {
		b, err := cl.Blobs().Get(q.Ctx, job.Models[0].Blob)
		if err != nil {
			return err
		}
		r.Model = filepath.Join(q.dir, "model.coppice")
		if err := cli.WriteFile(r.Model, b); err != nil {
			return err
		}
	}
	return q.show(c, r)
}

func (q *quickstart) show(c *QuickstartCmd, r *results.Result) error {
	info, err := q.cluster.Client().Cluster(q.Ctx)
	if err != nil {
		return err
	}
	shown := struct {
		*results.Result
		Cluster      *protocol.Cluster `json:"cluster"`
		Dir          string            `json:"dir,omitempty"`
		TotalSeconds float64           `json:"total_seconds"`
	}{Result: r, Cluster: info, TotalSeconds: time.Since(q.start).Seconds()}
	if c.Dir != "" || c.Stay {
		shown.Dir = q.dir
	}
	return q.Print(shown, func(w io.Writer) {
		r.Text(w)
		fmt.Fprintf(w, "\n%s, %s, total time %s\n", units.Plural(len(info.Coordinators), "coordinator"),
			units.Plural(len(info.Workers), "worker"), units.Duration(shown.TotalSeconds))
		q.next(w, c, info)
	})
}

// next suggests further commands.
func (q *quickstart) next(w io.Writer, c *QuickstartCmd, info *protocol.Cluster) {
	fmt.Fprintln(w, "\nWhere to look next:")
	if !c.Stay {
		fmt.Fprintln(w, "  coppice quickstart --stay              the same, but the cluster keeps running")
		fmt.Fprintln(w, "  coppice quickstart --data FILE         with data of your own: .mat, .npz, .npy, .csv, .libsvm, "+
			".arff, .parquet")
		fmt.Fprintln(w, "  coppice train --local --data FILE      without a cluster; the model's digest is the same")
		fmt.Fprintln(w, "  coppice algorithm list                 lists the algorithms; algorithm show NAME lists the "+
			"settings")
		return
	}
	fmt.Fprintf(w, "  export COPPICE_SERVER=%s\n", q.cluster.Servers())
	source := q.cluster.Certificates().Source()
	if source != nil {
		fmt.Fprintf(w, "  export COPPICE_TLS_DIR=%s\n", shellword.Quote(source.Dir()))
	}
	for _, command := range []string{"job show quickstart", "model show quickstart", "dataset list", "train --data FILE"} {
		fmt.Fprintf(w, "  coppice %s\n", command)
	}
	if address, err := connect.PageURL(q.Ctx, q.cluster.Client(), ""); err == nil {
		fmt.Fprintf(w, "  page     %s\n", address)
	}
	fmt.Fprintf(w, "  metrics  %s\n  logs     %s\n", strings.Join(metricsURLs(source.URLScheme(), info), " "),
		filepath.Join(q.dir, "logs"))
}

func metricsURLs(scheme string, info *protocol.Cluster) (urls []string) {
	for _, m := range info.Coordinators {
		urls = append(urls, scheme+"://"+m.HTTP+"/metrics")
	}
	for _, w := range info.Workers {
		if w.Metrics != "" {
			urls = append(urls, scheme+"://"+w.Metrics+"/metrics")
		}
	}
	return urls
}

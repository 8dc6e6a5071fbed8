package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/bench"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/speed"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
)

type benchClusterCmd struct {
	Data         string `placeholder:"FILE" help:"Data to train on (default: the artificial set of Geng 2016, 2,500 samples)."`
	Only         string `enum:"all,structrf,ldlf" default:"all" help:"Algorithm to measure: structrf, ldlf or all."`
	Coordinators int    `default:"3" help:"Number of coordinators: 1, 3 or 5."`
	Workers      int    `default:"1" help:"Number of workers, with one slot each."`
	Runs         int    `default:"5" help:"Number of measured runs, after a run to warm up."`
	Turns        int    `default:"4" help:"Jobs per run on the cluster, and as many in one process, interleaved. The values of a run are means over its jobs."`
	Trees        int    `default:"50" help:"Number of trees of structrf."`
	Steps        int    `default:"2000" help:"Number of gradient steps of ldlf. Each step is one round; there are no leaf updates."`
	Batch        int    `default:"128" help:"Samples in a mini-batch of ldlf."`
	TLS          bool   `name:"tls" help:"Encrypt all connections of the cluster (default: connections are not encrypted)."`

	dataflags.DataFlags
}

// benchReport is what `coppice bench cluster` prints.
type benchReport struct {
	speed.Report             // its rows are the times below
	Dataset      string      `json:"dataset"`
	Data         string      `json:"data"`
	Coordinators int         `json:"coordinators"`
	Workers      int         `json:"workers"`
	Turns        int         `json:"turns"`
	TLS          bool        `json:"tls,omitempty"`
	Forest       *bench.Pair `json:"structrf,omitempty"`
	Step         *bench.Step `json:"ldlf,omitempty"`
}

// Help implements kong's longer help.
func (benchClusterCmd) Help() string {
	return `Starts coordinators, and one or several workers with one slot, on this machine. Jobs on this cluster are compared with
the same jobs in this process, one task at a time. The difference is the cost of NATS, Raft and the engine when nothing
fails. Both sides may use all processors of this machine. Let nothing else run on the machine meanwhile.`
}

// Run implements `coppice bench cluster`.
func (c *benchClusterCmd) Run(a *cli.App) error {
	if n := c.Coordinators; n != 1 && n != 3 && n != 5 {
		return cli.Usagef("--coordinators %d: want 1, 3 or 5", n)
	}
	for flag, n := range map[string]int{"workers": c.Workers, "runs": c.Runs, "turns": c.Turns, "trees": c.Trees,
		"steps": c.Steps, "batch": c.Batch} {
		if n < 1 {
			return cli.Usagef("--%s %d: want at least 1", flag, n)
		}
	}
	src, checks, name := generate.Artificial(quickRows, 1), importer.Checks{}, "artificial"
	if err := c.BelongTo(c.Data); err != nil {
		return err
	}
	if c.Data != "" {
		var err error
		if src, checks, err = c.Open(a, c.Data); err != nil {
			return err
		}
		name = dataflags.DatasetName(c.Data)
	}
	report, err := c.onCluster(a, name, src, checks)
	if err != nil {
		return err
	}
	return a.Print(report, report.text)
}

// onCluster starts a cluster of this program in a temporary folder, measures, and ends the cluster. If the measurement
// fails, the last lines of the logs are printed.
func (c *benchClusterCmd) onCluster(a *cli.App, name string, src dataset.Source,
	checks importer.Checks) (report *benchReport, err error) {
	dir, err := tempdir.Make("bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	config := proc.Config{Dir: dir.Path, Coordinators: c.Coordinators, Workers: c.Workers,
		WorkerArgs: []string{"--slots", "1"}}
	if config.Exe, err = os.Executable(); err != nil {
		return nil, err
	}
	if c.TLS {
		if config.Certificates, err = proc.NewCertificates(filepath.Join(dir.Path, "certs")); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(a.Ctx, quickReady)
	defer cancel()
	cluster, err := proc.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	if report, err = c.compare(a, cluster, name, src, checks); err != nil && a.Ctx.Err() == nil {
		cluster.Tail(a.Stderr, quickTail)
	}
	return report, errors.Join(err, cluster.Close())
}

func (c *benchClusterCmd) compare(a *cli.App, cluster *proc.Cluster, name string, src dataset.Source,
	checks importer.Checks) (*benchReport, error) {
	m := progress.New(a)
	defer m.Clear()
	d, err := cluster.Client().Datasets().Import(a.Ctx, protocol.DatasetPut{Name: name}, src,
		m.Reading(a.Ctx, "reading data", checks))
	if err != nil {
		return nil, err
	}
	shards, err := cluster.Client().Datasets().Shards(a.Ctx, d.Manifest)
	if err != nil {
		return nil, err
	}
	b := &bench.Bench{
		Cluster: cluster, Data: &local.Data{Manifest: d.Manifest, Shards: shards}, Dataset: name, Runs: c.Runs,
		Turns: c.Turns,
		Note:  func(format string, args ...any) { m.Show(fmt.Sprintf(format, args...)) },
	}
	r := &benchReport{Dataset: name, Data: d.Manifest.String(), Coordinators: c.Coordinators, Workers: c.Workers,
		Turns: c.Turns, TLS: c.TLS}
	r.Report = speed.Report{Kind: kindCluster, Machine: speed.ThisMachine(), Versions: speed.Versions(), Runs: c.Runs}
	if c.Only != "ldlf" {
		if r.Forest, err = b.Forest(a.Ctx, c.Trees); err != nil {
			return nil, err
		}
	}
	if c.Only != "structrf" {
		if r.Step, err = b.Step(a.Ctx, c.Steps, c.Batch); err != nil {
			return nil, err
		}
	}
	r.tell()
	return r, nil
}

// tell lists the times as rows, as the other commands of bench have them.
func (r *benchReport) tell() {
	add := func(name string, p *bench.Pair) {
		r.Rows = append(r.Rows, speed.Result{Name: name, Of: "a job in one process", Seconds: p.Local},
			speed.Result{Name: name, Of: "a job on the cluster", Seconds: p.Cluster})
	}
	if r.Forest != nil {
		add("structrf", r.Forest)
	}
	if r.Step != nil {
		add("ldlf", &r.Step.Pair)
	}
}

func (r *benchReport) text(w io.Writer) {
	writeMachine(w, &r.Report)
	security := ""
	if r.TLS {
		security = ", with TLS"
	}
	fmt.Fprintf(w, "%s (%s): %s and %s with one slot%s; medians (least to greatest) of %s, each with %s per side\n\n",
		r.Dataset, r.Data, units.Plural(r.Coordinators, "coordinator"), units.Plural(r.Workers, "worker"), security,
		units.Plural(r.Runs, "run"), units.Plural(r.Turns, "job"))
	if f := r.Forest; f != nil {
		cli.WritePairs(w, [][2]string{
			{"structrf, in one process", spread(f.Local)},
			{"structrf, on the cluster", spread(f.Cluster)},
			{"computing time of tasks", fmt.Sprintf("%.3f s, of all workers", f.Computed)},
			{"cluster over one process", fmt.Sprintf("%+.1f %% (%+.1f to %+.1f %%)", excess(f.Ratio.Median), excess(f.Ratio.Min),
				excess(f.Ratio.Max))},
			{"bytes of a job", fmt.Sprintf("%s to the workers and %s back", units.Format(int64(f.Sent)),
				units.Format(int64(f.Received)))},
			{"Raft", raftText(f.Raft)},
			{"model", cli.ShortDigest(f.Digest) + " of the first job, the same on the cluster and in one process"},
		})
		fmt.Fprintln(w)
	}
	if s := r.Step; s != nil {
		cli.WritePairs(w, [][2]string{
			{"ldlf, in one process", fmt.Sprintf("%s, %s a step", spread(s.Pair.Local), micro(s.Local))},
			{"ldlf, on the cluster", fmt.Sprintf("%s, %s a step", spread(s.Pair.Cluster), micro(s.Cluster))},
			{"cluster over one process", microSpread(s.More) + " a step"},
			{"computing time of tasks", micro(s.Computed/float64(s.Steps)) + " a step, of all workers"},
			{"leader's time per step", phasesText(&s.Pair)},
			{"processor time per step", costsText(&s.Pair, func(c bench.Costs) string {
				return micro(c.Processor / float64(s.Steps))
			})},
			{"allocations per step", costsText(&s.Pair, func(c bench.Costs) string {
				return fmt.Sprintf("%.0f of %s", c.Allocations/float64(s.Steps), units.Format(int64(c.Bytes)/int64(s.Steps)))
			})},
			{"bytes of a step", fmt.Sprintf("%s to the workers and %s back",
				units.Format(int64(s.Sent)/int64(s.Steps)), units.Format(int64(s.Received)/int64(s.Steps)))},
			{"Raft", raftText(s.Raft)},
			{"model", cli.ShortDigest(s.Digest) + " of the first job, the same on the cluster and in one process"},
		})
	}
}

// phasesText says what the leader does in the time of a step, other than waiting.
func phasesText(p *bench.Pair) string {
	of := func(seconds float64) string { return micro(seconds / float64(p.Steps)) }
	return fmt.Sprintf("%s for sending, %s for adding results, %s between two rounds", of(p.Phases.Broadcast),
		of(p.Phases.Reduce), of(p.Phases.Between))
}

// costsText is a cost of the leader and of the workers.
func costsText(p *bench.Pair, of func(bench.Costs) string) string {
	return fmt.Sprintf("%s on the leader, %s on all workers", of(p.Leader), of(p.Workers))
}

func spread(s speed.Spread) string {
	return fmt.Sprintf("%.3f s (%.3f to %.3f)", s.Median, s.Min, s.Max)
}

// micro writes seconds as microseconds.
func micro(seconds float64) string {
	return strconv.FormatFloat(1e6*seconds, 'f', 0, 64) + " µs"
}

func microSpread(s speed.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", micro(s.Median), micro(s.Min), micro(s.Max))
}

// excess is by how many percent a ratio is above 1.
func excess(ratio float64) float64 { return 100 * (ratio - 1) }

func raftText(r bench.Raft) string {
	return fmt.Sprintf("a commit was in progress for %.1f %% of the time and delayed training for %.2f %%; %s per entry",
		100*r.Flight, 100*r.Wait, time.Duration(r.Proposal*float64(time.Second)).Round(10*time.Microsecond))
}

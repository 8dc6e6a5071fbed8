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
	"github.com/coppice-ldl/coppice/harness/chaos"
	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// ChaosCmd is `coppice chaos`.
type ChaosCmd struct {
	Seed      uint64        `default:"1" help:"Seed of the schedule, which says which fault hits which process, and when."`
	Rounds    int           `default:"10" help:"Number of rounds of faults; 50 rounds inject each measured fault 20 times."`
	Faults    []string      `placeholder:"NAME" help:"Faults to inject in every round, separated by commas (default: all faults that this machine supports). By default, two rounds of five have measured faults. One of twenty has partitions or faults with several recoveries. One of ten has other faults."`
	Algorithm string        `placeholder:"NAME" help:"Run only jobs of this algorithm, ldlf or structrf (default: both, and short jobs of all other algorithms and of networks)."`
	Workers   int           `default:"3" help:"Number of workers of the cluster."`
	Hold      time.Duration `default:"3s" help:"Duration of a partition."`
	MaxStall  time.Duration `default:"2s" help:"Longest stall of training that is allowed during a partition. Added to it are the commit interval, 20 round trips of --network, and 20 times the part of --heartbeat above 100ms."`
	Network   string        `placeholder:"KEY=VALUE,..." help:"Give each process a host of its own on an emulated network, which has these properties in each direction: rtt=50ms, jitter=5ms, loss=1%, duplicate=1%, rate=1Mbit (default: loopback). This needs root on Linux."`
	TLS       bool          `name:"tls" help:"Encrypt all connections. Each process then has a certificate (default: connections are not encrypted)."`
	Heartbeat time.Duration `placeholder:"T" help:"Heartbeat interval of the coordinators; long round trips need a longer interval (default: 100ms)."`
	Small     bool          `help:"Run smaller jobs, for a short test."`
	Keep      bool          `help:"Keep the folder with disks and logs. After a failure the folder is always kept."`
}

// Help implements kong's HelpProvider.
func (ChaosCmd) Help() string {
	return `Starts clusters of real processes on this machine and trains on them. Meanwhile it kills, stops, slows down and cuts off
processes, fills disks and damages files. At the end it prints a table of recovery times. The exit code is 0 only if
every model has the digest of an undisturbed run, and nothing that was acknowledged was lost.`
}

// Run implements `coppice chaos`.
func (c *ChaosCmd) Run(a *cli.App) error {
	if c.Rounds < 1 || c.Rounds > chaos.MaxRounds {
		return cli.Usagef("--rounds %d: want 1 to %d", c.Rounds, chaos.MaxRounds)
	}
	if c.Workers < 2 || c.Workers > chaos.MaxWorkers {
		return cli.Usagef("--workers %d: want 2 to %d, so that one can be lost", c.Workers, chaos.MaxWorkers)
	}
	if c.Hold < 0 || c.MaxStall < 0 {
		return cli.Usagef("--hold %v, --max-stall %v: want 0 or more", c.Hold, c.MaxStall)
	}
	config := chaos.Config{
		Seed: c.Seed, Rounds: c.Rounds, Faults: c.Faults, Algorithm: c.Algorithm, Workers: c.Workers, Hold: c.Hold,
		Stall: c.MaxStall, Small: c.Small, Progress: a.Stderr, Heartbeat: c.Heartbeat, TLS: c.TLS,
	}
	if err := config.Check(); err != nil {
		return cli.Usage(err)
	}
	dir, err := tempdir.Kept("chaos")
	if err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil { // network may start the process again, which makes another folder
		return err
	}
	if config.Network, err = c.network(); err != nil {
		return err
	}
	if config.Exe, err = os.Executable(); err != nil {
		return err
	}
	if dir, err = tempdir.Kept("chaos"); err != nil {
		return err
	}
	config.Dir = dir
	report, err := chaos.Run(a.Ctx, config)
	if errors.Is(err, chaos.ErrUsage) {
		return errors.Join(cli.Usage(err), os.RemoveAll(dir))
	}
	if report != nil {
		if failed := a.Print(report, func(w io.Writer) { chaosText(w, report, err == nil) }); failed != nil {
			return failed
		}
	}
	return c.end(a, dir, err)
}

// network returns the settings of --network, and starts the process again on a network of its own. It returns nil
// without --network.
func (c *ChaosCmd) network() (*netlab.Settings, error) {
	if c.Heartbeat != 0 {
		if _, err := protocol.NewTimeouts(c.Heartbeat, 0); err != nil {
			return nil, cli.Usagef("--heartbeat: %w", err)
		}
	}
	if c.Network == "" {
		if netlab.Missing() != "" {
			return nil, nil
		}
		return nil, netlab.Enter() // faults cut connections of the network that this process has then
	}
	s, err := netlab.Parse(c.Network)
	if err != nil {
		return nil, cli.Usagef("--network: %w", err)
	}
	return &s, netlab.Enter()
}

// end keeps or removes the folder, and says how to repeat a failure.
func (c *ChaosCmd) end(a *cli.App, dir string, err error) error {
	interrupted := a.Ctx.Err() != nil
	switch {
	case err == nil && c.Keep:
		a.Note("disks and logs are in %s", dir)
		return nil
	case err == nil, interrupted && !c.Keep:
		return errors.Join(err, os.RemoveAll(dir))
	case interrupted:
		return context.Canceled
	}
	a.Note("the seed is %d; the disks are in %s, the logs in %s", c.Seed, dir, filepath.Join(dir, "*", "logs"))
	a.Note("to repeat the same faults: %s", c.replay())
	return err
}

// replay returns the command that injects the same faults again.
func (c *ChaosCmd) replay() string {
	b := fmt.Sprintf("coppice chaos --seed %d --rounds %d --workers %d", c.Seed, c.Rounds, c.Workers)
	if len(c.Faults) > 0 {
		b += " --faults " + strings.Join(c.Faults, ",")
	}
	if c.Algorithm != "" {
		b += " --algorithm " + c.Algorithm
	}
	if c.Hold != chaos.DefaultHold && c.Hold != 0 {
		b += " --hold " + c.Hold.String()
	}
	if c.MaxStall != chaos.DefaultStall && c.MaxStall != 0 {
		b += " --max-stall " + c.MaxStall.String()
	}
	if c.Network != "" {
		b += " --network " + c.Network
	}
	if c.TLS {
		b += " --tls"
	}
	if c.Heartbeat != 0 {
		b += " --heartbeat " + c.Heartbeat.String()
	}
	if c.Small {
		b += " --small"
	}
	return b
}

// chaosText writes the table.
func chaosText(w io.Writer, r *chaos.Report, passed bool) {
	t := cli.NewTable(w, []string{"fault", "injected", "recovered", "median", "worst", "steps redone", "worst",
		"longest stall"}, 2, 3, 4, 5, 6, 7, 8)
	for _, f := range r.Faults {
		longest := "-"
		if f.Longest > 0 {
			longest = units.Duration(f.Longest)
		}
		t.AppendRow(cli.Row(
			f.Fault, strconv.Itoa(f.Injected), strconv.Itoa(f.Recovered), units.Duration(f.Median), units.Duration(f.Worst),
			units.Count(f.RedoneMedian), units.Count(f.RedoneWorst),
			longest,
		))
	}
	t.Render()
	for _, l := range r.Left {
		fmt.Fprintf(w, "not injected: %s: %s\n", l.Fault, l.Reason)
	}
	if !passed {
		return
	}
	fmt.Fprintf(w, "\nseed %d, %s, %s: %s acknowledged, none lost; %s done, each with the digest of an undisturbed run; "+
		"%s deleted, none came back\n",
		r.Seed, units.Plural(r.Rounds, "round"), units.Duration(r.Seconds), units.Plural(r.Jobs, "job"),
		units.Count(r.Digests), units.Count(r.Deleted))
}

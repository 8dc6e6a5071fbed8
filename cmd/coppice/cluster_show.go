package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// clusterShowCmd is what `coppice cluster` alone does.
type clusterShowCmd struct{ serverFlags }

// Help implements kong's HelpProvider.
func (clusterShowCmd) Help() string {
	return `"busy" is the number of tasks that a worker computes now; it is at most the number of slots. "task" is the recent time of
a task, for the kind of task that takes most of the worker's time; -o json has all kinds. "load" is the load average of the
machine over a minute. "last seen" is the time since a worker's last heartbeat, or since a coordinator last answered the
leader, which asks about every two seconds. "lag" is the number of log entries that a coordinator still lacks. A second
table says why workers compute nothing; -o json has the same as idle and idle_reason.`
}

// Run implements `coppice cluster` and `coppice cluster show`.
func (c *clusterShowCmd) Run(a *app) error {
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	info, err := cl.Cluster(a.ctx)
	if err != nil {
		return err
	}
	return a.print(info, func(w io.Writer) { writeCluster(w, info) })
}

func writeCluster(w io.Writer, c *protocol.Cluster) {
	leader := c.Leader
	if leader == "" {
		leader = "none at present; see coppice cluster members --stale"
	}
	pairs(w, [][2]string{
		{"cluster", c.ID}, {"leader", leader}, {"epoch", fmt.Sprint(c.Epoch)},
		{"coordinators", plural(len(c.Coordinators), "coordinator") + "; see coppice cluster members"},
		{"version", fmt.Sprintf("%s (protocol %d, arithmetic version %d)", c.Version, c.Protocol, c.Numerics)},
	})
	if c.Problem != "" {
		pairs(w, [][2]string{{"problem", c.Problem}})
	}
	if c.Warning != "" {
		pairs(w, [][2]string{{"warning", c.Warning}})
	}
	fmt.Fprintln(w)
	writeCoordinators(w, c)
	fmt.Fprintln(w)
	writeWorkers(w, c.Workers)
	writeIdle(w, c.Workers)
	if len(c.Workers) == 0 && c.Leader != "" {
		fmt.Fprintln(w, protocol.NoWorker(protocol.JoinList(c.Coordinators)))
	}
	writeDistrusted(w, c.Quarantined)
}

// writeCoordinators lists the coordinators as the leader sees them, or, while there is
// none, as they are recorded.
func writeCoordinators(w io.Writer, c *protocol.Cluster) {
	if len(c.Members) == 0 {
		t := newTable(w, []string{"coordinator", "address", "version"})
		for _, one := range c.Coordinators {
			t.AppendRow(rowOf(one.ID, one.HTTP, one.Version))
		}
		t.Render()
		return
	}
	t := newTable(w, []string{"coordinator", "role", "host", "address", "load", "lag", "last seen", "version", "problem"}, 5, 6, 7)
	for i := range c.Members {
		m := &c.Members[i]
		seen := lastSeen(m.LastSeen)
		if m.Role == protocol.RoleLeader {
			seen = "now"
		}
		t.AppendRow(rowOf(m.ID, m.Role, cmp.Or(m.Host, "-"), m.HTTP, loadOf(m.Load), count(m.Lag), seen, m.Version, m.Problem))
	}
	t.Render()
}

func writeWorkers(w io.Writer, workers []protocol.Worker) {
	t := newTable(w, []string{"worker", "state", "host", "address", "slots", "busy", "load", "shards", "task", "last seen", "version"}, 5, 6, 7, 8, 10)
	for i := range workers {
		one := &workers[i]
		t.AppendRow(rowOf(one.ID, one.State, cmp.Or(one.Host, "-"), cmp.Or(one.Metrics, one.Address, "-"), fmt.Sprint(one.Slots), fmt.Sprint(one.Busy),
			loadOf(one.Load), fmt.Sprint(one.Shards), unitTime(one), lastSeen(one.LastSeen), cmp.Or(one.Version, "-")))
	}
	t.Render()
}

// writeIdle says why workers compute nothing, those with the same reason together.
func writeIdle(w io.Writer, workers []protocol.Worker) {
	var reasons []string
	with := make(map[string][]string)
	for i := range workers {
		one := &workers[i]
		if one.Idle == "" {
			continue
		}
		if with[one.Idle] == nil {
			reasons = append(reasons, one.Idle)
		}
		with[one.Idle] = append(with[one.Idle], one.ID)
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, []string{"idle worker", "why"})
	for _, why := range reasons {
		names := with[why]
		text := strings.Join(names[:min(len(names), maxIdleNames)], ", ")
		if n := len(names) - maxIdleNames; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		t.AppendRow(rowOf(text, why))
	}
	t.Render()
}

// maxIdleNames bounds the workers that are named with one reason.
const maxIdleNames = 4

func loadOf(load float64) string {
	if load == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", load)
}

func lastSeen(ms int64) string {
	if ms < 0 {
		return "never"
	}
	return duration(float64(ms) / 1000)
}

// unitTime says what a unit takes a worker, of the kind that it computes most.
func unitTime(w *protocol.Worker) string {
	seconds, ok := w.TaskSeconds[w.MainKind]
	switch {
	case !ok:
		return "-"
	case seconds < 0.01:
		return fmt.Sprintf("%s %.2g ms", w.MainKind, 1000*seconds)
	}
	return w.MainKind + " " + duration(seconds)
}

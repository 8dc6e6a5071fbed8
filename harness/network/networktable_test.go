package network_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// networkTable has TestNetworkTable measure: "all", or rows of your own, separated by
// semicolons, each "loopback" or what `chaos --network` takes, and, where coordinators need
// it, a heartbeat: "rtt=20ms; rtt=300ms heartbeat=500ms". networkIdle is how long clusters
// are left idle to count elections (default 2m). docs/design/failures.md has the command.
const (
	networkTable = "COPPICE_NETWORK_TABLE"
	networkIdle  = "COPPICE_NETWORK_IDLE"
)

// networkRows is what "all" stands for.
const networkRows = "loopback; rtt=20ms; rtt=50ms; rtt=100ms heartbeat=200ms; rtt=200ms heartbeat=350ms; rtt=300ms " +
	"heartbeat=500ms; " +
	"rtt=10ms,rate=1Mbit; rtt=10ms,loss=5%; rtt=10ms,duplicate=10%"

// The variables by which a process is told what to measure.
const (
	rowKey   = "COPPICE_TEST_NETWORK_ROW"
	phaseKey = "COPPICE_TEST_NETWORK_PHASE"
)

// tableRow is a row of the table. Times are in seconds, 0 where something did not end
// within stepWithin; Error is the first of those.
type tableRow struct {
	Import, Submit, Step, Trees, Folds float64
	Dispatched, Retried                float64
	Elections                          float64
	Error                              string
}

const (
	tableCoordinators   = 3
	tableWorkers        = 2
	tableRows           = 50_000 // 1.2 MB of shards
	tableSteps          = 200
	loopbackSteps       = 4000 // fewer are over before anybody can look
	stepWithin          = 3 * time.Minute
	idleFor, idleWithin = 5 * time.Second, 30 * time.Second
)

// TestNetworkTable prints what a network costs: see networkTable.
func TestNetworkTable(t *testing.T) {
	if os.Getenv(networkTable) == "" {
		t.Skipf("it takes long; %s=all has it run", networkTable)
	}
	if os.Getenv(cmdtest.OnNetwork) != "" {
		measureRow(t)
		return
	}
	rows := rowsOf(os.Getenv(networkTable))
	results := make([]tableRow, len(rows))
	for i, row := range rows { // one by one: they share the machine
		results[i] = inChild(t, row, "times")
		results[i].Elections = -1 // not known yet
		t.Logf("%s: %+v", row, results[i])
	}
	var idle sync.WaitGroup
	for i, row := range rows {
		idle.Go(func() { results[i].Elections = inChild(t, row, "idle").Elections })
	}
	idle.Wait()
	var b strings.Builder
	b.WriteString("| network | elections | import of 1.2 MB | a job accepted | a step of `ldlf` | 20 trees of " +
		"`structrf` | 4 folds of `ldlf` | units given again |\n| --- | --: | --: | --: | --: | --: | --: | --: |\n")
	for i, row := range rows {
		b.WriteString(results[i].line(row))
	}
	t.Logf("\n%s", b.String())
}

func rowsOf(text string) (rows []string) {
	if text == "all" {
		text = networkRows
	}
	for row := range strings.SplitSeq(text, ";") {
		rows = append(rows, strings.TrimSpace(row))
	}
	return rows
}

func (m *tableRow) line(row string) string {
	ms := func(seconds float64) string {
		if seconds == 0 {
			return "-"
		}
		return (time.Duration(seconds * float64(time.Second))).Round(100 * time.Microsecond).String()
	}
	elections := strconv.FormatFloat(m.Elections, 'f', 0, 64)
	if m.Elections < 0 {
		elections = "-"
	}
	line := fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %.0f of %.0f |\n",
		row, elections, ms(m.Import), ms(m.Submit), ms(m.Step), ms(m.Trees), ms(m.Folds), m.Retried, m.Dispatched)
	if m.Error != "" {
		line += "| | " + m.Error + " |\n"
	}
	return line
}

// resultMark is before the result in a child's output.
const resultMark = "RESULT "

// inChild measures a row in a process with a network of its own.
func inChild(t *testing.T, row, phase string) (m tableRow) {
	out, _ := cmdtest.Alone(t, rowKey+"="+row, phaseKey+"="+phase)
	_, text, ok := strings.Cut(out, resultMark)
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&m); !ok || err != nil {
		t.Errorf("%s, %s: no result: %s", row, phase, out)
	}
	return m
}

// measureRow is what that process does.
func measureRow(t *testing.T) {
	settings, heartbeat, _ := strings.Cut(os.Getenv(rowKey), " heartbeat=")
	var args []string
	if heartbeat != "" {
		args = []string{"--heartbeat", heartbeat}
	}
	var c *farCluster
	steps := tableSteps
	if settings == "loopback" {
		steps = loopbackSteps
		near := cmdtest.Start(t, tableCoordinators, tableWorkers)
		c = &farCluster{Cluster: near, looks: near.Observer()}
	} else {
		c = startFar(t, settings, tableCoordinators, tableWorkers, args...)
	}
	var m tableRow
	if os.Getenv(phaseKey) == "idle" {
		m.Elections = c.idle(t)
	} else {
		m = c.times(t, steps)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", resultMark, b)
}

// idle leaves the cluster alone and returns the elections meanwhile.
func (c *farCluster) idle(t *testing.T) float64 {
	long := 2 * time.Minute
	if text := os.Getenv(networkIdle); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(d time.Duration) (term float64) {
		select {
		case <-time.After(d):
		case <-t.Context().Done():
		}
		return slices.Max(c.each(t, "coppice_raft_term"))
	}
	c.answering(t)
	before, now := -1.0, wait(0)
	for began := time.Now(); now != before && time.Since(began) < idleWithin; { // the elections of the start
		before, now = now, wait(idleFor)
	}
	return wait(long) - now
}

// answering waits until every coordinator serves its metrics: one whose log comes from the
// others does not at first.
func (c *farCluster) answering(t *testing.T) {
	t.Helper()
	for _, n := range c.Coordinators {
		testkit.Until(t, "metrics of "+n.Name, func() bool {
			_, err := c.looks.Scrape(t.Context(), c.HTTP(n))
			return err == nil
		})
	}
}

// times has the cluster do one thing after the other, and goes on where one fails.
func (c *farCluster) times(t *testing.T, steps int) (m tableRow) {
	c.Client().Patience = stepWithin
	take := func(what string, f func(context.Context) error) float64 {
		ctx, cancel := context.WithTimeout(t.Context(), stepWithin)
		defer cancel()
		began := time.Now()
		if err := f(ctx); err != nil {
			if m.Error == "" {
				m.Error = what + ": " + err.Error()
			}
			return 0
		}
		return time.Since(began).Seconds()
	}
	m.Import = take("the import", func(ctx context.Context) error {
		_, err := c.Client().Datasets().Import(ctx, protocol.DatasetPut{Name: "far"}, generate.Artificial(tableRows, 1),
			importer.Options{})
		return err
	})
	var job *protocol.JobInfo
	m.Submit = take("the job", func(ctx context.Context) (err error) {
		job, err = c.Client().Jobs().Submit(ctx, farSpec("ldlf", 0, steps))
		return err
	})
	if job != nil {
		take("ldlf", func(ctx context.Context) (err error) { m.Step, err = c.pace(ctx, job, uint64(steps)); return err })
	}
	m.Trees = take("structrf", func(ctx context.Context) error { return c.run(ctx, farSpec("structrf", 0, 0)) })
	m.Folds = take("folds", func(ctx context.Context) error { return c.run(ctx, farSpec("ldlf", 4, steps/2)) })
	m.Dispatched, m.Retried = c.total(t, "coppice_tasks_dispatched_total"), c.total(t, "coppice_tasks_retried_total")
	return m
}

// farSpec is a job of the table.
func farSpec(algorithm string, folds, steps int) protocol.Spec {
	s := protocol.Spec{Algorithm: algorithm, Dataset: "far", Folds: folds, Set: map[string]string{"preset": "paper",
		"trees": "20", "max_depth": "8"}}
	if algorithm == "ldlf" {
		s.Set = map[string]string{
			"steps": strconv.Itoa(steps), "trees": "3", "depth": "5", "batch_size": "256", "leaf_batches": "50",
			"validation_fraction": "0",
		}
	}
	return s
}

// run runs a job to its end.
func (c *farCluster) run(ctx context.Context, s protocol.Spec) error {
	j, err := c.Client().Jobs().Submit(ctx, s)
	if err == nil {
		_, err = c.end(ctx, j, func(*protocol.JobInfo) {})
	}
	return err
}

func (c *farCluster) end(ctx context.Context, j *protocol.JobInfo, see func(*protocol.JobInfo)) (*protocol.JobInfo,
	error) {
	j, err := c.Client().Jobs().Watch(ctx, strconv.FormatUint(j.ID, 10), see)
	if err == nil && j.State != protocol.Done {
		err = fmt.Errorf("the job is %s %s", j.State, j.Error)
	}
	return j, err
}

// pace returns the seconds of a step of a job of so many that runs: from its first committed one to
// its end.
func (c *farCluster) pace(ctx context.Context, j *protocol.JobInfo, steps uint64) (float64, error) {
	var first time.Time
	var from uint64
	_, err := c.end(ctx, j, func(j *protocol.JobInfo) {
		if first.IsZero() && j.Progress != nil && j.Progress.Step > 0 {
			first, from = time.Now(), j.Progress.Step
		}
	})
	if err != nil {
		return 0, err
	}
	if first.IsZero() || from >= steps {
		return 0, fmt.Errorf("the job was too fast to be seen")
	}
	return time.Since(first).Seconds() / float64(steps-from), nil
}

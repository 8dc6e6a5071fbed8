package monitoring_test

import (
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// monitoredJob is a job of a kind that metrics have to show.
type monitoredJob struct {
	name, kind string
	unit       string // the kind of most of its units
	rows       int
	flags      []string
}

// monitoredJobs are jobs that take minutes: of summed rounds, of trees, and of folds.
var monitoredJobs = []monitoredJob{
	{name: "forest", kind: "an LDLF job", unit: "step", rows: 20000, flags: []string{
		"--steps", "1000000000", "--set", "patience=1000000", "--set", "trees=3", "--set", "depth=5", "--set",
		"batch_size=256",
	}},
	{name: "trees", kind: "a StructRF job", unit: "tree", rows: 20000, flags: []string{"--algorithm", "structrf", "--set",
		"trees=10000", "--set", "max_depth=6"}},
	{name: "folds", kind: "a job of folds", unit: "fold", rows: 1000, flags: []string{
		"--folds", "1000", "--steps", "60", "--set", "patience=1000000", "--set", "trees=2", "--set", "depth=4", "--set",
		"batch_size=128",
	}},
}

// calm is a heartbeat with which a machine that is busy has no elections.
const calm = "500ms"

// submit imports data for the job and submits it; dir is for the file.
func (j monitoredJob) submit(t *testing.T, dir string) {
	t.Helper()
	cmdtest.Works(t, "dataset", "import", "--data", cmdtest.ArtificialFile(t, dir, j.name+".csv", j.rows, 1))
	cmdtest.Works(t, append([]string{"job", "submit", "--dataset", j.name, "--name", j.name}, j.flags...)...)
}

// processes lists where the processes of a cluster serve their metrics, by their names.
func processes(t *testing.T, c *proc.Cluster) (coordinators, workers map[string]string) {
	t.Helper()
	var info protocol.Cluster
	// A coordinator that just lost the leadership may answer, and knows no worker.
	testkit.Until(t, "all workers to be shown", func() bool {
		cmdtest.JSON(t, &info, "cluster", "show", "--server", c.Servers())
		return len(info.Workers) == len(c.Workers) && !slices.ContainsFunc(info.Workers, func(w protocol.Worker) bool {
			return w.Metrics == ""
		})
	})
	coordinators, workers = make(map[string]string), make(map[string]string)
	for _, n := range c.Coordinators {
		coordinators[n.Name] = c.HTTP(n)
	}
	for _, w := range info.Workers {
		workers[w.ID] = w.Metrics
	}
	return coordinators, workers
}

// TestShippedQueries: Prometheus's parser takes every query of metrics/METRICS.md, of the dashboard and of
// the alerts, and what they name is there in a cluster that runs jobs of every kind.
func TestShippedQueries(t *testing.T) {
	testkit.WithoutRace(t)
	queries := shippedQueries(t)
	for _, q := range queries {
		if _, err := selectors(q.expr); err != nil {
			t.Fatalf("%s, %s %s: %s: %v", q.where, q.question, q.panel, q.expr, err)
		}
	}
	dir := t.TempDir()
	t.Setenv("COPPICE_HEARTBEAT", calm)
	c := cmdtest.Start(t, 3, 2)
	t.Setenv("COPPICE_SERVER", c.Servers())
	for _, j := range monitoredJobs {
		j.submit(t, dir)
	}
	cmdtest.Works(t, "backup", filepath.Join(dir, "backup"))
	coordinators, workers := processes(t, c)
	addresses := slices.Concat(slices.Collect(maps.Values(coordinators)), slices.Collect(maps.Values(workers)))
	x := make(exposed)
	var faults []string
	defer func() {
		for _, f := range faults {
			t.Error(f)
		}
	}()
	testkit.Until(t, "everything that queries name", func() bool {
		for _, a := range addresses {
			series, err := c.Observer().Scrape(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.add(series); err != nil {
				t.Fatal(err)
			}
		}
		faults = x.faults(queries)
		return len(faults) == 0
	})
	promtoolChecks(t, addresses)
}

// promtoolChecks has Prometheus's own tool read what processes serve, where it is installed.
func promtoolChecks(t *testing.T, addresses []string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed (Debian: apt-get install prometheus): it reads no metrics here")
		return
	}
	for _, a := range addresses {
		cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
		cmd.Stdin = strings.NewReader(page(t, "http://"+a+"/metrics"))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics, of %s: %v\n%s", a, err, out)
		}
	}
}

// page returns what a URL serves.
func page(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return string(b)
}

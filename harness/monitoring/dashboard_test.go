package monitoring_test

import (
	"flag"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

var answersFile = flag.String("answers", "", "write the questions, queries and answers of TestDashboardOnPrometheus "+
	"to this file, as Markdown")

// key is a panel of the dashboard that answers one of the four questions, with what a right
// answer has while a job runs.
type key struct {
	question, panel string
	right           func(j monitoredJob, m []measured) bool
}

// positive: there is a value, and all are finite and above zero.
func positive(m []measured) bool {
	return len(m) > 0 && !slices.ContainsFunc(m, func(x measured) bool { return !(x.value > 0) || math.IsInf(x.value, 0) })
}

// value returns the value of the series with a label's value.
func value(m []measured, label, of string) (float64, bool) {
	for _, x := range m {
		if x.labels[label] == of {
			return x.value, true
		}
	}
	return 0, false
}

// is makes the check for one series of this value.
func is(want float64) func(monitoredJob, []measured) bool {
	return func(_ monitoredJob, m []measured) bool { return len(m) == 1 && m[0].value == want }
}

// The workers of the test: the second one is made slow.
const quick, slow = "w1", "w2"

// keys lists the panels that must answer rightly; instances has the workers' addresses.
func keys(instances map[string]string) []key {
	slower := func(label, quick, slow string) func(monitoredJob, []measured) bool {
		return func(_ monitoredJob, m []measured) bool {
			q, ok := value(m, label, quick)
			s, too := value(m, label, slow)
			return ok && too && positive(m) && s > 1.5*q
		}
	}
	return []key{
		{question: "Is it making progress?", panel: "Jobs", right: func(_ monitoredJob, m []measured) bool {
			v, _ := value(m, "state", "running")
			return v == 1
		}},
		{question: "Is it making progress?", panel: "Progress", right: func(j monitoredJob, m []measured) bool {
			v, ok := value(m, "name", j.name)
			return ok && v > 0 && v < 1
		}},
		{question: "Is it making progress?", panel: "Steps done", right: func(j monitoredJob, m []measured) bool {
			v, _ := value(m, "name", j.name)
			return v > 0
		}},
		{question: "Is it making progress?", panel: "Longest time without progress",
			right: func(_ monitoredJob, m []measured) bool {
				return len(m) == 1 && m[0].value > -1 && m[0].value < 60
			}},
		{question: "Is it making progress?", panel: "Steps a second", right: func(_ monitoredJob, m []measured) bool {
			return positive(m)
		}},
		{question: "Is it making progress?", panel: "Samples a second", right: func(_ monitoredJob, m []measured) bool {
			return positive(m)
		}},
		{question: "Which worker is slow?", panel: "Seconds a task, by worker and kind",
			right: func(j monitoredJob, m []measured) bool {
				m = slices.DeleteFunc(slices.Clone(m), func(x measured) bool { return x.labels["kind"] != j.unit })
				return slower("instance", instances[quick], instances[slow])(j, m)
			}},
		{question: "Which worker is slow?", panel: "Seconds a task, as the leader sees it",
			right: slower("worker", quick, slow)},
		{question: "Is Raft healthy?", panel: "Leaders", right: is(1)},
		{question: "Is Raft healthy?", panel: "Voters", right: is(3)},
		{question: "Is Raft healthy?", panel: "Know the leader", right: is(1)},
		{question: "Is Raft healthy?", panel: "Time to commit", right: func(_ monitoredJob, m []measured) bool {
			return positive(m)
		}},
		{question: "Is Raft healthy?", panel: "Entries behind the leader", right: func(_ monitoredJob, m []measured) bool {
			return len(m) == 2
		}},
		{question: "How many bytes a step?", panel: "Bytes a step", right: func(_ monitoredJob, m []measured) bool {
			return positive(m) && m[0].value > 10 && m[0].value < 10<<20
		}},
	}
}

// TestDashboardOnPrometheus: a real Prometheus that scrapes a cluster answers the dashboard's
// questions rightly while a job of each kind runs, takes each of its queries, and raises no alert. All connections have
// TLS.
func TestDashboardOnPrometheus(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	t.Setenv("COPPICE_HEARTBEAT", calm)
	issuer, err := proc.NewCertificates(filepath.Join(dir, "certs"))
	if err != nil {
		t.Fatal(err)
	}
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 3, Workers: 2, Certificates: issuer})
	t.Setenv("COPPICE_SERVER", c.Servers())
	t.Setenv("COPPICE_TLS_DIR", issuer.Source().Dir())
	coordinators, workers := processes(t, c)
	p := startPrometheus(t, coordinators, workers, issuer.Source().Dir())
	cmdtest.Works(t, "backup", filepath.Join(dir, "backup"))
	brake(t, c, slow)
	a := answers{names: workers}
	answered := make(map[shippedQuery]bool)
	for _, j := range monitoredJobs {
		j.submit(t, dir)
		if *answersFile != "" {
			p.settle(t, j)
		}
		for _, k := range keys(workers) {
			p.question(t, c, &a, j, k)
		}
		for _, q := range dashboardQueries(t) {
			answered[q] = len(p.ask(t, q.expr)) > 0 || answered[q]
		}
		cmdtest.Works(t, "job", "cancel", j.name)
	}
	for q, ok := range answered {
		if !ok && q.panel != "Jobs that wait" {
			t.Errorf("%s, %s: %s has never had an answer", q.question, q.panel, q.expr)
		}
	}
	noAlert(t, p)
	if *answersFile != "" {
		cmdtest.Write(t, filepath.Dir(*answersFile), filepath.Base(*answersFile), a.markdown())
	}
}

// settle waits until rates have nothing of the job before in them.
func (p *aPrometheus) settle(t *testing.T, j monitoredJob) {
	t.Helper()
	testkit.Until(t, "a window of "+j.kind+" alone", func() bool {
		m := p.ask(t, `max(count_over_time(coppice_job_progress_ratio{name="`+j.name+`"}[13s]))`)
		return len(m) == 1 && m[0].value >= 12
	})
}

// question waits until every query of a panel has a right answer.
func (p *aPrometheus) question(t *testing.T, c *proc.Cluster, a *answers, j monitoredJob, k key) {
	t.Helper()
	n := 0
	for _, q := range dashboardQueries(t) {
		if q.panel != k.panel || q.question != k.question {
			continue
		}
		n++
		var last []measured
		defer func() {
			if t.Failed() {
				t.Logf("%s: %s: %s: %v", j.name, q.panel, q.expr, last)
				for _, around := range []string{`up`, `coppice_job_steps`, `coppice_worker_tasks_total`,
					`rate(coppice_worker_tasks_total[10s])`, `coppice_jobs_waiting > 0`} {
					t.Logf("%s: %v", around, p.ask(t, around))
				}
			}
		}()
		testkit.Until(t, "a right answer of "+q.panel+" for "+j.kind, func() bool {
			if info, err := c.Client().Jobs().Get(t.Context(), j.name); err == nil && info.State.Final() {
				t.Fatalf("%s has ended, %s", j.name, info.State)
			}
			last = p.ask(t, q.expr)
			return k.right(j, last)
		})
		a.add(q, last)
	}
	if n == 0 {
		t.Errorf("the dashboard has no panel %q under %q", k.panel, k.question)
	}
}

// noAlert checks that Prometheus has evaluated the rules, and that none fires.
func noAlert(t *testing.T, p *aPrometheus) {
	t.Helper()
	want := len(ruleQueries(t))
	states := p.rules(t)
	if len(states) != want {
		t.Errorf("%d alerts, want %d", len(states), want)
	}
	for name, state := range states {
		// A disk of the machine that runs this may well be full.
		if state == "firing" && name != "CoppiceDiskNearlyFull" {
			t.Errorf("%s fires in a healthy cluster", name)
		}
	}
}

// brake stops a worker for most of the time, so that its units take several times as long,
// until the test ends.
func brake(t *testing.T, c *proc.Cluster, name string) {
	t.Helper()
	const runs, rests = 100 * time.Millisecond, 200 * time.Millisecond
	i := slices.IndexFunc(c.Workers, func(n *proc.Node) bool { return n.Name == name })
	w, stop, stopped := c.Workers[i], make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer w.Continue()
		for {
			select {
			case <-stop:
				return
			case <-time.After(runs):
				w.Stop()
			}
			select {
			case <-stop:
				return
			case <-time.After(rests):
				w.Continue()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}

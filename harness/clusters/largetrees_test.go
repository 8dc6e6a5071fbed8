package clusters_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// The flags of TestLargeBoost and TestLargeForest, which only run if they are asked for, on a machine with nothing else
// to do:
//
//	go test ./harness/clusters -run TestLargeBoost -v -timeout 2h -args -boost-rows 1000000
//	go test ./harness/clusters -run TestLargeForest -v -timeout 4h -args -forest-rows 5000000
var (
	boostRows     = flag.Int("boost-rows", 0, "samples of TestLargeBoost; 0: none")
	boostFeatures = flag.Int("boost-features", 100, "features of TestLargeBoost")
	boostLabels   = flag.Int("boost-labels", 20, "labels of TestLargeBoost")
	boostTrees    = flag.Int("boost-trees", 20, "trees of TestLargeBoost")
	boostBins     = flag.Int("boost-bins", 255, "bins of a feature in TestLargeBoost")
	forestRows    = flag.Int("forest-rows", 0, "samples of TestLargeForest; 0: none")
	forestKind    = flag.String("forest-kind", "smooth", "kind of the generated dataset of TestLargeForest")
	forestTrees   = flag.Int("forest-trees", 10, "trees of TestLargeForest")
	forestSamples = flag.Int("forest-min-samples", 20, "min_samples of TestLargeForest")
)

const (
	// leastSpeedUp is how many times as fast two workers are to be as one.
	leastSpeedUp = 1.5
	// moreMemory is the memory that a worker may need beyond 1.5 times its shards and the sums of a level.
	moreMemory = 256 << 20
	mega       = 1e6
)

// TestLargeBoost measures ldlboost on one worker and on two, each with one slot, next to a coordinator. In a third run,
// NATS has a process of its own, which separates its CPU time from the leader's. Before each measured job, a job of one
// tree has the workers fetch the shards.
func TestLargeBoost(t *testing.T) {
	if *boostRows == 0 {
		t.Skip("ldlboost is measured with -args -boost-rows N")
	}
	testkit.WithoutRace(t)
	s := newLargeSet(t, "random", *boostRows, "--features", strconv.Itoa(*boostFeatures), "--labels",
		strconv.Itoa(*boostLabels))
	s.algorithm, s.trees = "ldlboost", "rounds"
	s.settings = []string{fmt.Sprint("bins=", *boostBins), "feature_fraction=1", "validation_fraction=0"}
	one := s.measure(t, largeSetup{name: "1 worker", workers: 1}, *boostTrees)
	two := s.measure(t, largeSetup{name: "2 workers", workers: 2}, *boostTrees)
	apart := s.measure(t, largeSetup{name: "2 workers, NATS apart", workers: 2, apart: true}, *boostTrees)
	s.print(t, *boostTrees, one, two, apart)
	// The last level of a tree of depth 6 asks for the smaller children of 16 nodes.
	level := 16 * 8 * float64(1+*boostFeatures**boostBins) * float64(1+2**boostLabels)
	up := one.seconds / two.seconds
	fmt.Printf("two workers are %.2f times as fast as one; a level has %.0f MB\n", up, level/mega)
	if up < leastSpeedUp {
		t.Errorf("two workers are %.2f times as fast as one, want at least %.1f", up, leastSpeedUp)
	}
	for _, r := range []*largeRun{one, two} {
		if most := 1.5*s.bytes/float64(r.workers) + moreMemory + level; r.peak() > most {
			t.Errorf("%s: a worker took %.0f MB, want at most %.0f", r.name, r.peak()/mega, most/mega)
		}
	}
}

// TestLargeForest measures rf by histograms on two workers, and the exact forest in one process. The limit of memory of
// each worker is half of the dataset.
func TestLargeForest(t *testing.T) {
	if *forestRows == 0 {
		t.Skip("rf by histograms is measured with -args -forest-rows N")
	}
	testkit.WithoutRace(t)
	s := newLargeSet(t, *forestKind, *forestRows)
	s.algorithm, s.trees, s.settings = "rf", "trees", []string{fmt.Sprint("min_samples=", *forestSamples)}
	exact := s.local(t, "exact, in one process", *forestTrees)
	s.settings = append(s.settings, "split=histogram")
	one := s.measure(t, largeSetup{name: "histogram, 1 worker", workers: 1}, *forestTrees)
	two := s.measure(t, largeSetup{name: "histogram, 2 workers", workers: 2, memory: int64(s.bytes / 2)},
		*forestTrees)
	s.print(t, *forestTrees, exact, one, two)
}

// largeSet is a generated data file and the jobs on it.
type largeSet struct {
	file      string
	bytes     float64 // of its shards
	shards    int
	algorithm string
	trees     string   // the setting that says how many trees there are
	settings  []string // others
}

// newLargeSet generates a dataset of a kind. It is deleted when the test ends.
func newLargeSet(t *testing.T, kind string, rows int, more ...string) *largeSet {
	t.Helper()
	s := &largeSet{file: filepath.Join(t.TempDir(), "large.npz")}
	took := s.process(t, nil, append([]string{"dataset", "generate", "--kind", kind, "--rows", strconv.Itoa(rows), "--out",
		s.file}, more...)...)
	t.Logf("the file was generated: %.0f s of CPU time, at most %.0f MB", took.cpu, took.peak/mega)
	return s
}

// process runs a command in a process of its own, which must succeed, for as long as it takes. If v is not nil, the
// command must print JSON, which is decoded into v.
func (s *largeSet) process(t *testing.T, v any, args ...string) (took largeCosts) {
	t.Helper()
	if v != nil {
		args = append(args, "-o", "json")
	}
	cmd, stdout, stderr := cmdtest.Process(t, filepath.Dir(s.file), args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("coppice %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	if v != nil {
		if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
			t.Fatalf("coppice %s: %v", strings.Join(args, " "), err)
		}
	}
	took.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		took.peak = 1024 * float64(usage.Maxrss)
	}
	return took
}

// train returns the arguments of a job of so many trees.
func (s *largeSet) train(trees int, more ...string) []string {
	args := []string{"train", "--algorithm", s.algorithm, "--test-fraction", "0.1", "--seed", "1", "--set",
		fmt.Sprintf("%s=%d", s.trees, trees)}
	for _, set := range s.settings {
		args = append(args, "--set", set)
	}
	return append(args, more...)
}

// largeSetup says on which cluster a job is measured.
type largeSetup struct {
	name    string
	workers int
	apart   bool  // true if NATS has a process of its own
	memory  int64 // of each worker, in bytes; 0: as much as there is
}

// largeCosts are what a job cost a process.
type largeCosts struct {
	cpu, peak      float64 // seconds; bytes since the process began
	sent, received float64 // bytes over NATS
}

// largeRun is what a job has done.
type largeRun struct {
	largeSetup
	seconds     float64 // of training, without the evaluation
	leader      largeCosts
	nats        largeCosts // of a process of its own
	each        []largeCosts
	train, test float64 // K-L divergence
	digest      string
}

// peak returns the most memory that a worker took.
func (r *largeRun) peak() (most float64) {
	for _, w := range r.each {
		most = max(most, w.peak)
	}
	return most
}

// largeResult is the JSON of train that the runs need.
type largeResult struct {
	cmdtest.Trained
	Loss float64 `json:"loss"`
}

// add takes what a job printed.
func (r *largeRun) add(t *testing.T, e *largeResult) {
	t.Helper()
	for kind, seconds := range e.Spent {
		if kind != "evaluation" && kind != "prediction" {
			r.seconds += seconds
		}
	}
	kl, ok := e.Measures.Get("kl")
	if !ok || len(e.ModelDigest) != 64 {
		t.Fatalf("%s: the model has the digest %q and no K-L divergence", r.name, e.ModelDigest)
	}
	r.train, r.test, r.digest = e.Loss, kl.Mean, e.ModelDigest
	t.Logf("%s: %s", r.name, fmt.Sprint(e.Spent))
}

// local trains in one process with one thread.
func (s *largeSet) local(t *testing.T, name string, trees int) *largeRun {
	t.Helper()
	r := &largeRun{largeSetup: largeSetup{name: name}}
	var e largeResult
	r.leader = s.process(t, &e, s.train(trees, "--local", "--threads", "1", "--data", s.file)...)
	r.add(t, &e)
	return r
}

// measure trains on a new cluster. Before, a job of one tree has the workers fetch the shards.
func (s *largeSet) measure(t *testing.T, setup largeSetup, trees int) (r *largeRun) {
	t.Helper()
	r = &largeRun{largeSetup: setup}
	t.Run(setup.name, func(t *testing.T) {
		c, nats := s.start(t, setup)
		var d struct {
			Bytes  float64 `json:"bytes"`
			Shards int     `json:"shards"`
		}
		took := s.process(t, &d, "dataset", "import", "--server", c.Servers(), "--data", s.file, "--name", "large")
		t.Logf("imported: %.0f s of CPU time, at most %.0f MB", took.cpu, took.peak/mega)
		s.bytes, s.shards = d.Bytes, d.Shards
		if setup.memory > 0 {
			s.refused(t, c)
		}
		where := []string{"--server", c.Servers(), "--dataset", "large"}
		s.process(t, nil, s.train(1, where...)...)
		testkit.Until(t, "the workers to have all shards", func() bool { return s.held(t, c) })
		before := s.costs(t, c, nats)
		var e largeResult
		s.process(t, &e, s.train(trees, where...)...)
		all := s.costs(t, c, nats)
		for i := range all {
			all[i].cpu -= before[i].cpu
			all[i].sent -= before[i].sent
			all[i].received -= before[i].received
		}
		r.leader, r.nats, r.each = all[0], all[1], all[2:]
		r.add(t, &e)
	})
	if t.Failed() {
		t.FailNow()
	}
	return r
}

// refused checks that a job of exact trees fails for want of memory, and that its error says what needs less.
func (s *largeSet) refused(t *testing.T, c *proc.Cluster) {
	t.Helper()
	cmdtest.Works(t, "job", "submit", "--server", c.Servers(), "--dataset", "large", "--algorithm", s.algorithm, "--name",
		"exact")
	testkit.Until(t, "the exact forest to be refused", func() bool {
		j, err := c.Client().Jobs().Get(t.Context(), "exact")
		if err != nil || j.State.Final() && !strings.Contains(j.Error, "split: histogram") {
			t.Fatalf("the job of exact trees: %+v, %v", j, err)
		}
		return j.State.Final()
	})
}

// start starts a cluster of a set-up. nats is the process of NATS, or nil.
func (s *largeSet) start(t *testing.T, setup largeSetup) (c *proc.Cluster, nats *os.Process) {
	t.Helper()
	cfg := proc.Config{Coordinators: 1, Workers: setup.workers, WorkerArgs: []string{"--slots", "1"}}
	if setup.memory > 0 {
		cfg.WorkerArgs = append(cfg.WorkerArgs, "--memory", fmt.Sprint(setup.memory))
	}
	if setup.apart {
		nats, cfg.Args = cmdtest.StartNATS(t)
	}
	return cmdtest.StartWith(t, cfg), nats
}

// costs returns what the leader, NATS and each worker have taken. NATS has taken nothing without a process of its own.
func (s *largeSet) costs(t *testing.T, c *proc.Cluster, nats *os.Process) []largeCosts {
	t.Helper()
	of := func(pid int, address string) largeCosts {
		series, err := c.Observer().Scrape(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return largeCosts{cpu: cmdtest.CPUTime(t, pid).Seconds(), peak: mostMemory(t, pid),
			sent: series["coppice_nats_sent_bytes_total"], received: series["coppice_nats_received_bytes_total"]}
	}
	all := []largeCosts{of(c.Coordinators[0].Pid(), c.HTTP(c.Coordinators[0])), {}}
	if nats != nil {
		all[1] = largeCosts{cpu: cmdtest.CPUTime(t, nats.Pid).Seconds(), peak: mostMemory(t, nats.Pid)}
	}
	for i, w := range s.workers(t, c) {
		all = append(all, of(c.Workers[i].Pid(), w.Metrics))
	}
	return all
}

// workers returns the workers as the leader knows them, in the order of the cluster's.
func (s *largeSet) workers(t *testing.T, c *proc.Cluster) (all []protocol.Worker) {
	t.Helper()
	info, err := c.Client().Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Workers {
		i := slices.IndexFunc(info.Workers, func(w protocol.Worker) bool { return w.ID == n.Name })
		if i < 0 {
			t.Fatalf("the leader does not know worker %s", n.Name)
		}
		all = append(all, info.Workers[i])
	}
	return all
}

// held reports whether each worker has each shard, also those that another worker computes on.
func (s *largeSet) held(t *testing.T, c *proc.Cluster) bool {
	t.Helper()
	for _, w := range s.workers(t, c) {
		series, err := c.Observer().Scrape(t.Context(), w.Metrics)
		if err != nil || int(series["coppice_worker_shards"]) < s.shards {
			return false
		}
	}
	return true
}

// print prints a table of runs, whose models must be the same.
func (s *largeSet) print(t *testing.T, trees int, runs ...*largeRun) {
	t.Helper()
	bytes := func(x float64) string { return fmt.Sprintf("%.0f MB", x/mega) }
	each := func(r *largeRun, of func(largeCosts) string) string {
		var all []string
		for _, w := range r.each {
			all = append(all, of(w))
		}
		return strings.Join(all, ", ")
	}
	fmt.Printf("\n%s, %s of shards, %d trees\n\n", s.algorithm, bytes(s.bytes), trees)
	fmt.Println("| | seconds | s a tree | K-L train, test | sent by workers | received | CPU s: leader, NATS | workers " +
		"| peak: leader | workers |")
	fmt.Println("| --- | --: | --: | --- | --- | --- | --- | --- | --: | --- |")
	for _, r := range runs {
		fmt.Printf("| %s | %.1f | %.2f | %.5f, %.5f | %s | %s | %.1f, %.1f | %s | %s | %s |\n", r.name, r.seconds,
			r.seconds/float64(trees), r.train, r.test, each(r, func(w largeCosts) string { return bytes(w.sent) }),
			each(r, func(w largeCosts) string { return bytes(w.received) }), r.leader.cpu, r.nats.cpu,
			each(r, func(w largeCosts) string { return fmt.Sprintf("%.1f", w.cpu) }), bytes(r.leader.peak),
			each(r, func(w largeCosts) string { return bytes(w.peak) }))
		if len(r.each) > 0 && r.digest != runs[len(runs)-1].digest {
			t.Errorf("%s: digest %s, with %s %s", r.name, r.digest, runs[len(runs)-1].name, runs[len(runs)-1].digest)
		}
	}
	fmt.Println()
}

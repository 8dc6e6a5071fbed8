package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	oneSeed = flag.Uint64("sim.seed", 0, "run this seed only, and say what happens")
	seeds   = flag.Int("sim.seeds", defaultSeeds, "how many seeds TestSeeds runs")
	first   = flag.Bool("sim.first", false, "stop at the first seed that breaks a promise")
	traces  = flag.String("sim.traces", "", "a folder for what happened in the runs that broke a promise")
	within  = flag.String("sim.dir", "", "a folder for the disks, which whoever starts a shard makes and removes")
	shard   = flag.String("sim.shard", "", "k/n: run, in this process, every n-th seed from the k-th on, and report in "+
		"lines of JSON")
)

// matrixSeeds is how many seeds hit each cell of the matrix. What a seed hits depends a little on the machine. So with
// fewer seeds, down to mostSeeds, a few cells may be missed.
const (
	matrixSeeds = 700
	mostSeeds   = 400
	fewCells    = 5
)

// directory makes an empty directory for disks, in memory if the system has such a place.
func directory(t testing.TB) string {
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || !st.IsDir() {
		base = ""
	}
	if *within != "" {
		base = *within
	}
	dir, err := os.MkdirTemp(base, "coppice-sim-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// simulate runs one seed in a bubble.
func simulate(t *testing.T, seed uint64, out func(string, ...any)) (r *Result) {
	dir := directory(t)
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Run(seed, dir, out); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// TestMain has one goroutine run at a time wherever seeds run: what a seed does then
// depends least on the machine.
func TestMain(m *testing.M) {
	flag.Parse()
	if *oneSeed != 0 || *shard != "" {
		runtime.GOMAXPROCS(1)
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// TestSeeds runs the simulation of many seeds, in as many processes as there are
// processors; -sim.seed=N replays one.
func TestSeeds(t *testing.T) {
	if _, err := theMaterial(); err != nil {
		t.Fatal(err)
	}
	switch {
	case *oneSeed != 0:
		replay(t, *oneSeed)
	case *shard != "":
		runShard(t)
	default:
		runAll(t)
	}
}

// replay runs one seed and says what happens.
func replay(t *testing.T, seed uint64) {
	r := simulate(t, seed, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if r.Violation != nil {
		t.Fatalf("seed %d: %v", seed, r.Violation)
	}
	t.Logf("%d entries, %v of virtual time, cells %v", r.Entries, r.Virtual, r.Cells)
}

// runAll runs all seeds and checks that each run of the matrix was hit.
func runAll(t *testing.T) {
	n := *seeds
	if testing.Short() && n == defaultSeeds {
		n = shortSeeds
	}
	began := time.Now()
	sum := runShards(t, n)
	t.Logf("%d seeds in %.1f s: %d entries of the log, %.0f s of virtual time", sum.seeds, time.Since(began).Seconds(),
		sum.entries, sum.virtual.Seconds())
	for _, line := range sum.broken {
		t.Error(line)
	}
	var missed []string
	least := n
	for _, c := range Cells() {
		least = min(least, sum.cells[c])
		if sum.cells[c] == 0 {
			missed = append(missed, c.String())
		}
	}
	t.Logf("%d of %d cells of fault and phase were hit, the rarest %d times", len(Cells())-len(missed),
		len(Cells()), least)
	t.Logf("budgets left %d units out", sum.notRun)
	if n >= mostSeeds && sum.notRun == 0 {
		t.Error("budgets left no unit out")
	}
	if n >= matrixSeeds && len(missed) > 0 || n >= mostSeeds && len(missed) > fewCells {
		t.Errorf("never hit: %s", strings.Join(missed, "; "))
	}
}

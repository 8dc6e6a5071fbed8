package clusters_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// sized is a job of `dldl` with a hidden layer that makes Θ of about so many values.
type sized struct {
	data                            string
	theta                           int      // bytes of Θ
	more                            []string // settings
	hidden, batch, steps, validates int
}

// sizedLabels is the labels of the rows.
const sizedLabels = 5

// newSized makes a job whose hidden layer reads so many values of a row, behind layers of so many parameters.
func newSized(t *testing.T, values, features, reads, before int, more ...string) *sized {
	t.Helper()
	each := reads + 1 + sizedLabels
	z := &sized{hidden: max(1, (values-before)/each), more: more}
	z.theta = 4 * (before + z.hidden*each + sizedLabels)
	z.data = filepath.Join(t.TempDir(), "sized.npz")
	cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "2000", "--features", strconv.Itoa(features),
		"--labels", strconv.Itoa(sizedLabels), "--out", z.data)
	return z
}

// denseSized has the hidden layer alone.
func denseSized(t *testing.T, values, features int) *sized {
	t.Helper()
	return newSized(t, values, features, features, 0)
}

// imageSized has two convolutions of images of 32 x 32 before it.
func imageSized(t *testing.T, values int) *sized {
	t.Helper()
	return newSized(t, values, 1024, 32*8*8, 16*9+16+32*16*9+32, "features=conv", "shape=1x32x32", "channels=16,32")
}

func (z *sized) args(more ...string) []string {
	args := []string{"train", "--data", z.data, "--algorithm", "dldl", "--seed", "3", "--steps", strconv.Itoa(z.steps),
		"--test-fraction", "0.1"}
	sets := []string{fmt.Sprint("hidden=", z.hidden), fmt.Sprint("batch_size=", z.batch),
		fmt.Sprint("validation_steps=", z.validates), "patience=1000", "refit=false"}
	for _, set := range append(sets, z.more...) {
		args = append(args, "--set", set)
	}
	return append(args, more...)
}

// TestSizes: a network of 600,000 values, whose state is a blob and whose messages come in fragments, gives on a
// cluster the digest of this process, also where a worker and the leader are killed on the way.
func TestSizes(t *testing.T) {
	testkit.WithoutRace(t)
	z := denseSized(t, 600_000, 200)
	z.batch, z.steps, z.validates = 64, 240, 60
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, z.args("--local", "-o", "json")...))
	c := cmdtest.Start(t, 3, 2)
	got := cmdtest.ModelDigest(t, cmdtest.MidWay(t, c, "killed", z.args("-o", "json"), func() {
		cmdtest.Kill(t, c.Workers[0])
		leader := cmdtest.Leader(t, c)
		testkit.Until(t, "a state to be a blob", func() bool {
			return largestFile(t, filepath.Join(leader.Dir, "blobs")) > 3*int64(z.theta)
		})
		cmdtest.Kill(t, leader)
	}))
	if got != want || len(got) != 64 {
		t.Errorf("digest %q, in this process %q", got, want)
	}
}

// largestFile returns the size of the largest file of a folder.
func largestFile(t *testing.T, dir string) (most int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it is gone by now
			most = max(most, info.Size())
		}
	}
	return most
}

// TestLargeSizes prints what a step of networks takes in this process and on two workers, its
// bytes, and the most memory of the leader. It is for a machine with nothing else to do:
//
//	COPPICE_TEST_VALUES=1000000,10000000 go test -run TestLargeSizes -v -timeout 60m ./harness/clusters
//
// COPPICE_TEST_BATCHES lists other mini-batches than of 64 and 512 rows. The networks are a hidden layer of 1,000
// features, and two convolutions of images of 32 x 32 and a hidden layer.
func TestLargeSizes(t *testing.T) {
	values := os.Getenv("COPPICE_TEST_VALUES")
	if values == "" {
		t.Skip("COPPICE_TEST_VALUES is not set: the numbers of values of Θ")
	}
	batches := os.Getenv("COPPICE_TEST_BATCHES")
	if batches == "" {
		batches = "64,512"
	}
	for _, n := range numbersOf(t, values) {
		for name, z := range map[string]*sized{"dense": denseSized(t, n, 1000), "images": imageSized(t, n)} {
			for _, batch := range numbersOf(t, batches) {
				z.batch = batch
				// Enough that the start of a job, a third of a second, hardly counts.
				z.steps = max(48, min(800, 800_000_000/n*64/batch))
				z.validates = z.steps / 4
				t.Run(fmt.Sprintf("%s, %d values, batch %d", name, n, batch), func(t *testing.T) { measureSize(t, z) })
			}
		}
	}
}

func numbersOf(t *testing.T, list string) (all []int) {
	t.Helper()
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%q is not a list of numbers", list)
		}
		all = append(all, n)
	}
	return all
}

func measureSize(t *testing.T, z *sized) {
	one, two := localStep(t, z, 1), localStep(t, z, 2)
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 1, Workers: 2, WorkerArgs: []string{"--slots", "1"}})
	idle := mostMemory(t, c.Coordinators[0].Pid())
	var r cmdtest.Trained
	before := leaderTraffic(t, c)
	cmdtest.JSON(t, &r, z.args("--server", c.Servers())...)
	if r.ModelDigest != one.digest || r.ModelDigest != two.digest {
		t.Errorf("digest %s, in this process %s and %s", r.ModelDigest, one.digest, two.digest)
	}
	there, back := leaderTraffic(t, c)[0]-before[0], leaderTraffic(t, c)[1]-before[1]
	theta, peak := float64(z.theta), mostMemory(t, c.Coordinators[0].Pid())
	t.Logf("Θ of %.1f MB, mini-batches of %d rows, %d steps", theta/1e6, z.batch, z.steps)
	t.Logf("a step: %.1f ms with --threads 1, %.1f ms with --threads 2, %.1f ms on two workers: %.2f and %.2f times",
		1e3*one.step, 1e3*two.step, 1e3*stepSeconds(z, &r), stepSeconds(z, &r)/one.step, stepSeconds(z, &r)/two.step)
	t.Logf("bytes a step of the leader: %.2f Θ sent, %.2f Θ received", there/theta/float64(z.steps),
		back/theta/float64(z.steps))
	t.Logf("the leader: at most %.0f MB, %.0f MB before the job: %.1f Θ with Adam's 2 Θ", peak/1e6, idle/1e6,
		(peak-idle)/theta)
}

// here is what a job takes in this process.
type here struct {
	step   float64 // seconds
	digest string
}

func localStep(t *testing.T, z *sized, threads int) here {
	t.Helper()
	var r cmdtest.Trained
	cmdtest.JSON(t, &r, z.args("--local", "--threads", strconv.Itoa(threads))...)
	return here{step: stepSeconds(z, &r), digest: r.ModelDigest}
}

// stepSeconds returns the seconds of a step: its round and what comes between rounds, but not the evaluation.
func stepSeconds(z *sized, r *cmdtest.Trained) float64 {
	return (r.Spent["step"] + r.Spent["waiting"]) / float64(z.steps)
}

// leaderTraffic returns the bytes that the workers were sent, and those that they sent.
func leaderTraffic(t *testing.T, c *proc.Cluster) (bytes [2]float64) {
	t.Helper()
	s, err := c.Observer().Scrape(t.Context(), c.HTTP(c.Coordinators[0]))
	if err != nil {
		t.Fatal(err)
	}
	return [2]float64{s["coppice_nats_sent_bytes_total"], s["coppice_nats_received_bytes_total"]}
}

// mostMemory returns the most memory that a process has had, in bytes.
func mostMemory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kilobytes); err == nil {
			return kilobytes * 1024
		}
	}
	t.Skip("the system does not tell the most memory of a process")
	return 0
}

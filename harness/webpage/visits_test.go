package webpage_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// The flags of TestVisits:
//
//	go test ./harness/webpage -run TestVisits -v -timeout 1h -args -jobs 10000 -visits 1000
var (
	manyJobs = flag.Int("jobs", 200, "jobs of the cluster of TestVisits")
	visits   = flag.Int("visits", 60, "visits of TestVisits, three times")
)

const (
	// maxVisit bounds the bytes of a first visit, with all that the page refers to.
	maxVisit = 100 << 10
	// slowVisit is a time of HTML that is not in order. On an idle machine, 50 ms are enough.
	slowVisit = 5 * time.Second
	// mostGrowth is how many bytes of memory a coordinator may need more after the visits.
	mostGrowth = 16 << 20
	submitters = 8
)

// TestVisits: with many jobs, a first visit of every section takes few bytes, and the memory of the coordinators stays
// as it is, however many visits there are.
func TestVisits(t *testing.T) {
	testkit.WithoutRace(t)
	c := cmdtest.StartWith(t, proc.Config{Coordinators: 3, Args: []string{"--max-queue", "100000"}})
	t.Setenv("COPPICE_SERVER", c.Servers())
	cmdtest.Works(t, "dataset", "import", "--data", cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1), "--name",
		"set")
	manyQueued(t, c, *manyJobs)
	leader := cmdtest.Leader(t, c)
	roots := make([]string, len(c.Coordinators))
	for i, n := range c.Coordinators {
		roots[i] = "http://" + c.HTTP(n)
	}
	for _, section := range sections {
		html, first, later := "", time.Duration(0), []time.Duration(nil)
		for i := range 10 * len(roots) {
			began := time.Now()
			html = fetch(t, roots[i%len(roots)]+section)
			if took := time.Since(began); i < len(roots) { // later visits share what was made
				first = max(first, took)
			} else {
				later = append(later, took)
			}
		}
		size := len(html)
		for _, m := range assets.FindAllStringSubmatch(html, -1) {
			size += len(fetch(t, roots[len(roots)-1]+m[1]))
		}
		slices.Sort(later)
		fmt.Printf("%d jobs: %-17s HTML within %v on each coordinator, later %v, %.1f KB; with assets %.1f KB\n", *manyJobs,
			section, first.Round(100*time.Microsecond), later[len(later)/2].Round(100*time.Microsecond), kilo(len(html)),
			kilo(size))
		if size > maxVisit || later[len(later)/2] > slowVisit {
			t.Errorf("%s: %d bytes, %v", section, size, later)
		}
	}
	paths := slices.Concat(sections, []string{"/ui/jobs/job-1", "/ui/compare?job=job-1&job=job-2", "/ui/datasets/set",
		"/ui/submit?like=job-1", "/ui/jobs?name=job-1*&state=queued", "/ui/no/such/page"})
	var before []memoryUse
	for i := range 4 {
		var now []memoryUse
		for k, n := range c.Coordinators {
			now = append(now, memoryOf(t, c, n))
			fmt.Printf("after %d visits, coordinator %s%s: %v\n", i**visits, n.Name,
				map[bool]string{true: " (leads)"}[n == leader], now[k])
			if i == 3 && now[k].heap > before[k].heap+mostGrowth {
				t.Errorf("the heap of coordinator %s grew: %v, then %v", n.Name, before[k], now[k])
			}
		}
		if i == 1 {
			before = now // the first visits fill caches
		}
		for k := range *visits * min(1, 3-i) {
			fetch(t, roots[k%len(roots)]+paths[k/len(roots)%len(paths)])
		}
	}
}

// manyQueued submits jobs, which wait for workers.
func manyQueued(t *testing.T, c *proc.Cluster, n int) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, submitters)
	for k := range submitters {
		all.Go(func() {
			for i := k; i < n && errs[k] == nil; i += submitters {
				seed := uint64(i)
				_, errs[k] = c.Client().Jobs().Submit(t.Context(), protocol.Spec{Name: fmt.Sprintf("job-%d", i+1), Dataset: "set",
					Algorithm: "ldlf", Seed: &seed, TestFraction: 0.2})
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var assets = regexp.MustCompile(`(?:href|src)="(/ui/static/[^"]+)"`)

// fetch returns the body of an answer. It asks again while the cluster has no leader.
func fetch(t *testing.T, address string) (text string) {
	t.Helper()
	testkit.Until(t, address, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		text = string(b)
		switch {
		case err == nil && response.StatusCode == http.StatusServiceUnavailable:
			return false
		case err != nil || response.StatusCode != http.StatusOK && !strings.HasSuffix(address, "/no/such/page"):
			t.Fatalf("%s: %s, %v: %.500s", address, response.Status, err, b)
		}
		return true
	})
	return text
}

// memoryUse is the memory of a process in bytes.
type memoryUse struct {
	heap     int64 // twice what was in use at the last garbage collection
	resident int64
}

// String implements fmt.Stringer.
func (m memoryUse) String() string {
	return fmt.Sprintf("heap %.1f MB, resident %.1f MB", float64(m.heap)/1e6, float64(m.resident)/1e6)
}

// memoryOf returns the memory of a coordinator.
func memoryOf(t *testing.T, c *proc.Cluster, n *proc.Node) memoryUse {
	t.Helper()
	series, err := c.Observer().Scrape(t.Context(), c.HTTP(n))
	if err != nil {
		t.Fatal(err)
	}
	return memoryUse{int64(series["go_memstats_next_gc_bytes"]), int64(series["process_resident_memory_bytes"])}
}

func kilo(n int) float64 { return float64(n) / 1000 }

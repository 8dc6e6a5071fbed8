package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what a run found.
type Report struct {
	Seed      uint64   `json:"seed"`
	Rounds    int      `json:"rounds"`
	Algorithm string   `json:"algorithm,omitempty"`
	Faults    []Row    `json:"faults"`
	Left      []Left   `json:"left_out,omitempty"`
	Jobs      int      `json:"jobs"`    // acknowledged; none was lost where the run passed
	Digests   int      `json:"digests"` // of jobs that are done, each equal to the undisturbed one
	Deleted   int      `json:"deleted"` // of these jobs; none came back where the run passed
	Seconds   float64  `json:"seconds"`
	Strikes   []Strike `json:"injections"`

	began time.Time
}

// Row sums up one fault.
type Row struct {
	Fault     string `json:"fault"`
	Injected  int    `json:"injected"`
	Recovered int    `json:"recovered"`
	// Seconds to the next committed progress: the first commit of work that was begun
	// after the fault.
	Median float64 `json:"median_seconds"`
	Worst  float64 `json:"worst_seconds"`
	// Steps that a leader had folded before the fault and that were folded again.
	RedoneMedian uint64 `json:"redone_median_steps"`
	RedoneWorst  uint64 `json:"redone_worst_steps"`
	// Longest is the longest time without committed progress from the fault until a
	// while after its end, of partitions.
	Longest float64 `json:"longest_stall_seconds,omitempty"`
}

// Left is a fault that was not injected because this machine cannot have it.
type Left struct {
	Fault  string `json:"fault"`
	Reason string `json:"reason"`
}

// Strike is one injection.
type Strike struct {
	Round     int    `json:"round"`
	Fault     string `json:"fault"`
	Target    string `json:"target"`
	Recovered bool   `json:"recovered"`
	// Seconds to the next committed progress.
	Seconds     float64 `json:"seconds"`
	StepsRedone uint64  `json:"steps_redone"`
	Interval    float64 `json:"commit_interval_seconds"`
	// Longest time without committed progress, of a partition.
	Longest float64 `json:"longest_stall_seconds,omitempty"`
}

func newReport(c *Config, faults []*fault, left []Left) *Report {
	r := &Report{Seed: c.Seed, Rounds: c.Rounds, Algorithm: c.Algorithm, Left: left, began: time.Now()}
	for _, f := range faults {
		r.Faults = append(r.Faults, Row{Fault: f.name})
	}
	return r
}

// took notes how a strike ended.
func (s *Strike) took(got recovery) {
	s.Recovered = true
	s.Seconds = got.after.Seconds()
	s.StepsRedone = got.redone
}

// text says how it ended, for progress.
func (s *Strike) text() string {
	if !s.Recovered {
		return "not recovered"
	}
	text := fmt.Sprintf("%5.0f ms", 1000*s.Seconds)
	if s.Longest > 0 {
		text += fmt.Sprintf(", longest stall %.0f ms", 1000*s.Longest)
	}
	if s.StepsRedone > 0 {
		text += fmt.Sprintf(", %d steps recomputed", s.StepsRedone)
	}
	return text
}

// summed fills in the rows.
func (r *Report) summed() *Report {
	r.Seconds = time.Since(r.began).Seconds()
	for i := range r.Faults {
		r.Faults[i].sum(r.Strikes)
	}
	return r
}

func (row *Row) sum(strikes []Strike) {
	var seconds []float64
	var redone []uint64
	for i := range strikes {
		s := &strikes[i]
		if s.Fault != row.Fault {
			continue
		}
		row.Injected++
		if !s.Recovered {
			continue
		}
		row.Recovered++
		seconds, redone = append(seconds, s.Seconds), append(redone, s.StepsRedone)
		row.Longest = max(row.Longest, s.Longest)
	}
	if row.Recovered == 0 {
		return
	}
	row.Median, row.Worst = median(seconds), slices.Max(seconds)
	row.RedoneMedian, row.RedoneWorst = median(redone), slices.Max(redone)
}

// median of an even number of values is the greater of the two in the middle.
func median[T uint64 | float64](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// missing is the error of a run that injected some fault never.
func (r *Report) missing() error {
	var names []string
	for _, row := range r.Faults {
		if row.Injected == 0 {
			names = append(names, row.Fault)
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: these faults were never injected: %s", ErrFailed, strings.Join(names, ", "))
	}
	return nil
}

package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// flush sends what was written so far.
func flush(w http.ResponseWriter) { http.NewResponseController(w).Flush() }

// TestExperimentWatch: an experiment is followed over streams that are cut, without a leader in
// between; an empty line repeats the last state without runs, and a stream tells of runs anew.
func TestExperimentWatch(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if want := "/v1/experiments/e/changes?runs=true"; r.URL.String() != want {
			t.Errorf("%s is asked for", r.URL)
		}
		switch asked.Add(1) {
		case 1:
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
		case 2:
			io.WriteString(w, "\n"+`{"name":"e","state":"running","runs_done":1}`+"\n\n"+
				`{"name":"e","state":"running","runs_done":2,"runs_ended":[{"job":7,"runs":[{"task":4,"failed":true}]}]}`+"\n\n")
			flush(w)
			panic(http.ErrAbortHandler) // the leader dies
		case 3:
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
		case 4:
			io.WriteString(w, `{"name":"e","state":"running","runs_done":2}`+"\n{\n")
		default:
			answer(w, http.StatusOK, protocol.ExperimentLine{Experiment: protocol.Experiment{State: protocol.Done, Done: 3}})
		}
	})
	c := connect(t, s.URL)
	c.Patience = time.Second
	var seen []string
	last, err := c.Experiments().Watch(t.Context(), "e", true, func(x *protocol.ExperimentLine) {
		c.Patience = 0 // it has been met
		seen = append(seen, fmt.Sprint(x.Experiment.Done, x.RunsEnded))
	})
	want := "1 [] 1 [] 2 [{7 [{4 true false }]}] 2 [] 2 [] 3 []"
	if got := strings.Join(seen, " "); err != nil || last.Done != 3 || got != want || asked.Load() != 5 {
		t.Errorf("%+v, %v after %d requests: saw %s, want %s", last, err, asked.Load(), got, want)
	}
}

// TestWatchWithoutCluster: until a line has come, a watch waits as long as any request.
func TestWatchWithoutCluster(t *testing.T) {
	c := connect(t, dead(t))
	c.Patience = 50 * time.Millisecond
	if _, err := c.Experiments().Watch(t.Context(), "e", false, nil); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if _, err := c.Jobs().Watch(t.Context(), "j", nil); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	stranger := connect(t, serve(t, http.NotFound).URL)
	if _, err := stranger.Jobs().Watch(t.Context(), "j", nil); !errors.Is(err, ErrStranger) ||
		errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// TestWatchWhileItIsSlow: time in which the caller does something else is no silence of the
// coordinator.
func TestWatchWhileItIsSlow(t *testing.T) {
	var watches atomic.Int32
	seen := make(chan bool, 9)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		watches.Add(1)
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Running})
		flush(w)
		<-seen
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Done})
	})
	c := connect(t, s.URL)
	c.watchSilence = 500 * time.Millisecond
	last, err := c.Jobs().Watch(t.Context(), "3", func(*protocol.JobInfo) {
		seen <- true
		time.Sleep(2 * c.watchSilence) // a slow reader
	})
	if err != nil || last.State != protocol.Done || watches.Load() != 1 {
		t.Errorf("%+v, %v after %d watches", last, err, watches.Load())
	}
}

// TestWatchOfRepeatedExperiment: an experiment has not ended if a later line says that it goes on.
func TestWatchOfRepeatedExperiment(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			io.WriteString(w, `{"name":"e","state":"cancelled"}`+"\n"+`{"name":"e","state":"running"}`+"\n")
			flush(w)
			panic(http.ErrAbortHandler)
		}
		answer(w, http.StatusOK, protocol.ExperimentLine{Experiment: protocol.Experiment{State: protocol.Done}})
	})
	last, err := connect(t, s.URL).Experiments().Watch(t.Context(), "e", true, func(*protocol.ExperimentLine) {})
	if err != nil || last.State != protocol.Done || asked.Load() != 2 {
		t.Errorf("%+v, %v after %d requests", last, err, asked.Load())
	}
}

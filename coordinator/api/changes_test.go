package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// told reads the lines of a stream of an experiment.
type told struct {
	t    testing.TB
	body io.Closer
	r    *bufio.Reader
	runs []string // that the lines say to have ended
}

func (s *site) follow(query string) *told {
	s.t.Helper()
	answer := s.ask("GET", "/v1/experiments/e/changes"+query, nil)
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != "application/jsonl" {
		s.t.Fatalf("status %d, %s", answer.StatusCode, kind)
	}
	s.t.Cleanup(func() { answer.Body.Close() })
	return &told{t: s.t, body: answer.Body, r: bufio.NewReader(answer.Body)}
}

// next returns the next line that is not empty; nil: the stream has ended.
func (l *told) next() *protocol.ExperimentLine {
	l.t.Helper()
	for {
		b, err := l.r.ReadBytes('\n')
		if err == io.EOF && len(b) == 0 {
			return nil
		}
		if err != nil {
			l.t.Fatal(err)
		}
		if len(b) == 1 {
			continue
		}
		x := new(protocol.ExperimentLine)
		if err := json.Unmarshal(b, x); err != nil {
			l.t.Fatalf("%s: %v", b, err)
		}
		n := 0
		for _, of := range x.RunsEnded {
			for _, c := range of.Runs {
				n++
				l.runs = append(l.runs, fmt.Sprint(of.Job, " ", c.Task, " ", c.Failed, " ", c.NotRun))
			}
		}
		if n > protocol.CellStatesPage {
			l.t.Errorf("a line has %d runs", n)
		}
		return x
	}
}

// until reads lines until so many runs were told.
func (l *told) until(runs int) (x *protocol.ExperimentLine) {
	l.t.Helper()
	for len(l.runs) < runs {
		if x = l.next(); x == nil {
			l.t.Fatalf("the stream ends after %q", l.runs)
		}
	}
	return x
}

// study is an experiment with running jobs.
type study struct {
	*site
	epoch uint64
	jobs  []protocol.JobInfo
}

func newStudy(t *testing.T, jobs, repeats int) *study {
	s := &study{site: newSite(t)}
	r := studyOf(s.put("art", 200), "t", jobs)
	for i := range r.Jobs {
		r.Jobs[i].Job.Cells.Repeats = repeats
	}
	list := s.site.study(r)
	s.epoch, s.jobs = s.cfg.Store.State().Epoch(), list.Jobs
	for _, j := range list.Jobs {
		s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: s.epoch, Job: j.ID, State: protocol.Running, Time: 5})
	}
	return s
}

func (s *study) blob(b []byte) string {
	s.t.Helper()
	digest, err := s.cfg.Blobs.Folder.Put(b)
	if err != nil {
		s.t.Fatal(err)
	}
	return digest
}

// record records the outcome of a run, and returns the digest of its blob.
func (s *study) record(job, run int, outcome []byte) string {
	s.t.Helper()
	digest := s.blob(outcome)
	s.propose(protocol.EntryResult, protocol.ResultEntry{
		Epoch: s.epoch, Job: s.jobs[job].ID, Round: 1, Task: uint32(run), Of: 4, Digest: digest, Bytes: uint64(len(outcome)),
		Failed: bytes.Equal(outcome, failedOutcome),
	})
	return digest
}

var failedOutcome = (&childjob.Outcome{Head: []byte(`{"steps":1,"error":"why"}`)}).Encode()

// finishStudy ends a job with the outcomes of its runs; nil: the run was not run.
func (s *study) finishStudy(job int, outcome string, parts ...[]byte) {
	s.t.Helper()
	cells := []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: s.blob(childjob.AppendCells(nil, parts,
		make([]uint64, len(parts)))), Bytes: 1}, Count: len(parts)}}
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: s.epoch, Job: s.jobs[job].ID,
		Outcome: json.RawMessage(outcome), Time: 9, Cells: cells})
}

// TestChangesOfAnExperiment: the first line is what a request without changes is answered, the
// others tell each run once, also the runs from before the stream, and the outcome of a run is
// read once; through a follower as well.
func TestChangesOfAnExperiment(t *testing.T) {
	s := newStudy(t, 2, 1)
	one, other := s.jobs[0].ID, s.jobs[1].ID
	s.record(0, 0, outcomeOf(0))
	first := s.record(0, 1, failedOutcome)
	l, plain := s.follow("?runs=true"), s.follow("")
	var x protocol.Experiment
	s.get("GET", "/v1/experiments/e", nil, &x)
	for _, line := range []*protocol.ExperimentLine{l.next(), plain.next()} {
		if line.RunsEnded != nil || !reflect.DeepEqual(line.Experiment, x) || x.Done != 2 {
			t.Errorf("the first line is %+v, want %+v", line, x)
		}
	}
	l.until(2)
	if err := s.cfg.Blobs.Folder.Delete(first); err != nil {
		t.Fatal(err)
	}
	s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: s.epoch, Job: one, Round: 1, Tasks: []uint32{2}})
	s.record(1, 3, outcomeOf(3))
	if line := l.until(4); line.Done != 3 || line.NotRun != 1 || line.Index <= x.Index {
		t.Errorf("%+v", line)
	}
	late := s.follow("?runs=1")
	late.next()
	late.until(4)
	s.finishStudy(0, `{"runs_failed":1,"runs_not_run":1}`, outcomeOf(0), failedOutcome, nil, outcomeOf(3))
	s.finishStudy(1, `{}`, outcomeOf(0), outcomeOf(1), outcomeOf(2), outcomeOf(3))
	last := new(protocol.ExperimentLine)
	for _, stream := range []*told{l, late, plain, s.follower().follow("?runs=true")} {
		for line := stream.next(); line != nil; line = stream.next() {
			last = line
		}
		if last.State != protocol.Done || last.Done != 7 {
			t.Errorf("the last line is %+v", last)
		}
		want := 8
		if stream == plain {
			want = 0
		}
		seen := make(map[string]bool)
		for _, run := range stream.runs {
			seen[run] = true
		}
		if len(stream.runs) != want || len(seen) != want || want > 0 && !(seen[fmt.Sprint(one, " 1 true false")] &&
			seen[fmt.Sprint(one, " 2 false true")] && seen[fmt.Sprint(other, " 3 false false")]) {
			t.Errorf("it tells of the runs %q", stream.runs)
		}
	}
	s.refuse(404, "GET", "/v1/experiments/none/changes", nil, "none")
	s.refuse(400, "GET", "/v1/experiments/e/changes?runs=x", nil, `runs: want true or false, got "x"`)
}

// TestEndedRunsWithoutOutcomes: a stream tells of runs that are recorded although their outcomes, which are large, are
// not here.
func TestEndedRunsWithoutOutcomes(t *testing.T) {
	s := newStudy(t, 1, 1)
	for run := range 4 {
		digest := digests.Digest(sha256.Sum256(outcomeOf(run))).String()
		s.propose(protocol.EntryResult, protocol.ResultEntry{
			Epoch: s.epoch, Job: s.jobs[0].ID, Round: 1, Task: uint32(run), Of: 4, Digest: digest, Bytes: maxFoldReads,
			Failed: run == 2,
		})
	}
	l := s.follow("?runs=true")
	l.until(4)
	if slices.Sort(l.runs); l.runs[2] != fmt.Sprint(s.jobs[0].ID, " 2 true false") ||
		l.runs[3] != fmt.Sprint(s.jobs[0].ID, " 3 false false") {
		t.Errorf("it tells of the runs %q", l.runs)
	}
}

// TestEndedRunsReadLater: if the outcomes of a done job cannot be read, a stream tells of its runs once they can be.
func TestEndedRunsReadLater(t *testing.T) {
	s := newStudy(t, 2, 1)
	s.finishStudy(1, `{"runs_failed":1}`, outcomeOf(0), failedOutcome, outcomeOf(2), outcomeOf(3))
	stored := s.cfg.Store.State().Job(s.jobs[1].ID).Cells[0].Blob
	outcomes, err := s.cfg.Blobs.Folder.Get(stored)
	if err == nil {
		err = s.cfg.Blobs.Folder.Delete(stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := s.follow("?runs=true")
	s.record(0, 3, outcomeOf(3))
	l.until(1)
	s.blob(outcomes)
	l.until(5)
}

// TestPagesOfChanges: many runs come in several lines, of a job that is done in the last lines.
func TestPagesOfChanges(t *testing.T) {
	s := newStudy(t, 1, protocol.CellStatesPage/4+1)
	runs := make([]uint32, protocol.CellStatesPage+3)
	for u := range runs {
		runs[u] = uint32(u)
	}
	for some := range slices.Chunk(runs, protocol.MaxWithheld) {
		s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: s.epoch, Job: s.jobs[0].ID, Round: 1, Tasks: some})
	}
	l := s.follow("?runs=true")
	began := time.Now()
	l.until(len(runs))
	s.get("POST", "/v1/experiments/e/cancel", nil, nil)
	late := s.follow("?runs=true")
	for _, stream := range []*told{l, late} {
		for stream.next() != nil {
		}
		if len(stream.runs) != len(runs) {
			t.Errorf("%d runs are told, want %d", len(stream.runs), len(runs))
		}
	}
	t.Logf("%v for all lines", time.Since(began))
}

// TestLastLineAtOnce: the last line does not wait for its turn.
func TestLastLineAtOnce(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	const soon = 150 * time.Millisecond
	least := time.Hour
	for i := 0; least > soon && i < 20; i++ {
		name := fmt.Sprint("job-", i)
		s.submit(name)
		l := s.watch(name)
		l.next(protocol.Queued)
		began := time.Now()
		s.get("POST", "/v1/jobs/"+name+"/cancel", nil, nil)
		l.next(protocol.Cancelled)
		least = min(least, time.Since(began))
	}
	if least > soon {
		t.Errorf("it comes after %v at the least", least)
	}
}

// TestLinesAreBounded: many changes are few lines. A stream without changes says that it lives.
func TestLinesAreBounded(t *testing.T) {
	s := newStudy(t, 1, 1)
	l := s.follow("")
	began, lines := time.Now(), 0
	const changes = 60
	for range changes {
		s.get("POST", "/v1/experiments/e/pause", nil, nil)
		s.get("POST", "/v1/experiments/e/resume", nil, nil)
	}
	s.get("POST", "/v1/experiments/e/cancel", nil, nil)
	for line := l.next(); line != nil; line = l.next() {
		lines++
		if line.State == protocol.Cancelled {
			break
		}
	}
	most := int(4*time.Since(began).Seconds()) + 3
	if lines > most {
		t.Errorf("%d lines about %d changes in %v", lines, 2*changes, time.Since(began))
	}
	quiet := newStudy(t, 1, 1)
	q := quiet.follow("")
	q.next()
	if b, err := q.r.ReadBytes('\n'); err != nil || len(b) != 1 {
		t.Errorf("without a change: %q, %v", b, err)
	}
}

// TestStreamsAreBounded: one stream too many is refused, other requests are not; a client that
// leaves makes room, and leaves nothing behind.
func TestStreamsAreBounded(t *testing.T) {
	s := newStudy(t, 1, 1)
	g := newGuard(inClear(s.cfg), Limits{Requests: 9, Streams: 3, Bodies: 1 << 20}, time.Minute)
	s.web.Config.Handler = g
	first, second := s.follow("?runs=true"), s.watch("e.t.0")
	first.next()
	second.next(protocol.Running)
	for _, path := range []string{"/v1/experiments/e/changes", "/v1/jobs/e.t.0/changes"} {
		answer := s.ask("GET", path, nil)
		if answer.Header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
		s.problem(answer, 503, path, "at most 3 streams of changes at once, and fewer of one caller", "--max-connections")
	}
	s.get("GET", "/v1/experiments/e", nil, new(protocol.Experiment))
	first.body.Close()
	testkit.Until(t, "room", func() bool { return g.open.inUse() == 1 })
	s.follow("").next()
	second.body.Close()
	testkit.Until(t, "room again", func() bool { return g.open.inUse() == 1 })
}

// TestOpenPagesAreBounded: open pages that are live have a limit of their own, so that other clients find room.
func TestOpenPagesAreBounded(t *testing.T) {
	block := make(chan struct{})
	g := newGuard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }),
		Limits{Requests: 20, Streams: 9, Pages: 4, Bodies: 1 << 20}, time.Minute)
	var all sync.WaitGroup
	ask := func(path, name string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r.WithContext(access.With(t.Context(), access.Caller{Name: name, Role: rights.Read})))
		return w
	}
	for i := range 4 {
		all.Go(func() { ask("/ui/live/jobs", fmt.Sprint("u", i)) })
	}
	testkit.Until(t, "open pages", func() bool { return g.pages.inUse() == 4 })
	if w := ask("/ui/live/jobs", "v"); w.Code != 503 || !strings.Contains(w.Body.String(), "4 open pages that are live") {
		t.Errorf("one page too many: %d %s", w.Code, w.Body)
	}
	if g.active.inUse() != 4 || g.open.inUse() != 4 {
		t.Errorf("a refused page keeps a place")
	}
	all.Go(func() { ask("/v1/jobs/1/changes", "v") })
	all.Go(func() { ask("/ui/jobs", "v") })
	testkit.Until(t, "another client", func() bool { return g.open.inUse() == 5 && g.active.inUse() == 6 })
	close(block)
	all.Wait()
	if g.active.inUse() != 0 || g.open.inUse() != 0 || g.pages.inUse() != 0 {
		t.Errorf("places are kept")
	}
}

// TestHeadOfChanges: a request for the header alone is answered at once. Only the path of a stream is one.
func TestHeadOfChanges(t *testing.T) {
	s := newStudy(t, 1, 1)
	g := newGuard(inClear(s.cfg), Limits{Requests: 9, Streams: 9, Bodies: 1 << 20}, time.Minute)
	s.web.Config.Handler = g
	for _, path := range []string{"/v1/experiments/e/changes", "/v1/jobs/e.t.0/changes"} {
		answer := s.ask("HEAD", path, nil)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/jsonl" {
			t.Errorf("%s: status %d, %v", path, answer.StatusCode, answer.Header)
		}
	}
	testkit.Until(t, "the end", func() bool { return g.active.inUse() == 0 })
	for path, want := range map[string]bool{"/v1/jobs/changes": false, "/v1/experiments/changes": false,
		"/v1/jobs/changes/changes": true} {
		if got := rights.Is(httptest.NewRequest("GET", path, nil))&rights.Stream != 0; got != want {
			t.Errorf("%s is a stream: %v, want %v", path, got, want)
		}
	}
}

// pipe is a listener for one connection without a buffer.
type pipe struct {
	conn chan net.Conn
	over chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conn:
		return conn, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error   { close(p.over); return nil }
func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }

// TestStreamThatIsNotRead: a reader that takes nothing is disconnected, and the stream ends.
func TestStreamThatIsNotRead(t *testing.T) {
	s := newStudy(t, 1, 1)
	g := newGuard(inClear(s.cfg), Limits{Requests: 9, Streams: 9}, 200*time.Millisecond)
	here, there := net.Pipe()
	l := &pipe{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- there
	began, over := make(chan bool), make(chan bool)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		defer close(over)
		g.ServeHTTP(w, r)
	})}
	go web.Serve(l)
	defer web.Close()
	if _, err := io.WriteString(here, "GET /v1/experiments/e/changes HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-began
	<-over
	if n := g.open.inUse(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
	if _, err := here.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays")
	}
}

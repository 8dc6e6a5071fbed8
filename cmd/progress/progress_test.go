package progress

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/protocol"
)

// slowMeter returns a meter and what moves its clock.
func slowMeter(terminal bool) (m *Meter, out *bytes.Buffer, pass func(time.Duration)) {
	now := time.Unix(0, 0)
	out = new(bytes.Buffer)
	m = &Meter{w: out, terminal: terminal, size: func() (columns, lines int) {
		return 0, 0
	}, now: func() time.Time { return now }, start: now, command: (&cli.App{Reach: []string{"--server", "h:1"}}).Command}
	return m, out, func(d time.Duration) { now = now.Add(d) }
}

// TestPausedJob checks that the command which resumes a paused job names the cluster.
func TestPausedJob(t *testing.T) {
	m, out, pass := slowMeter(false)
	pass(3 * time.Second)
	m.Job(&protocol.JobInfo{Name: "j", State: protocol.Paused})
	if want := "to resume it: coppice job resume j --server h:1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q does not end with %q", out, want)
	}
}

// What takes under two seconds shows nothing; then there is a line every two.
func TestMeterLines(t *testing.T) {
	m, out, pass := slowMeter(false)
	for i := range 100 {
		m.training(round.Progress{Step: uint64(i), Steps: 100, Samples: uint64(i) * 64, Loss: 0.5, Phase: "training"})
		if i == 19 && out.Len() > 0 {
			t.Errorf("after 1.9 s it has shown %q", out)
		}
		pass(100 * time.Millisecond)
	}
	m.Clear()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines in 10 s:\n%s", len(lines), out)
	}
	if want := "40 %  step 40 of 100  K-L 0.50000  640 samples/s  ETA 6.0 s  training"; strings.TrimSpace(
		lines[1]) != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
}

// On a terminal there is one line, which goes at the end.
func TestMeterTerminal(t *testing.T) {
	m, out, pass := slowMeter(true)
	for range 50 {
		m.Show("text")
		pass(100 * time.Millisecond)
	}
	m.Clear()
	if text := out.String(); strings.Contains(text, "\n") || strings.Count(text, "text") < 10 ||
		!strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("got %q", text)
	}
}

func TestMeterJob(t *testing.T) {
	for _, test := range []struct {
		job  protocol.JobInfo
		want string
	}{
		{protocol.JobInfo{Name: "x", State: protocol.Queued}, "job x is queued"},
		{
			protocol.JobInfo{
				State: protocol.Running, Tasks: 8, Gathered: 2, InFlight: 3,
				Progress: &round.Progress{Step: 2, Steps: 8, Loss: 0.5, Phase: "growing trees"},
			}, " 25 %  step 2 of 8  K-L 0.50000  growing trees",
		},
		{protocol.JobInfo{State: protocol.Running, Progress: &round.Progress{Step: 5, Loss: -1}}, "step 5"},
		{
			protocol.JobInfo{
				State: protocol.Running, Job: &round.Job{Folds: 3}, Tasks: 3, Gathered: 1,
				Progress: &round.Progress{Step: 50, Steps: 100, Loss: -1, Phase: "1 of 3 folds done"},
			}, " 50 %  step 50 of 100  1 of 3 folds done",
		},
	} {
		m, out, pass := slowMeter(false)
		pass(quiet)
		m.Job(&test.job)
		if got := strings.TrimSuffix(out.String(), "\n"); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestFit(t *testing.T) {
	for want, got := range map[string]string{
		"step 1": fit("step 1", 7), "step…": fit("step 1", 6), "long line": fit("long line", 0), "Σ d…": fit("Σ d ln", 5),
		"…": fit("abc", 2),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// While a job tells nothing there is a line every two seconds all the same: how long the job has
// been training, then what the job told last.
func TestPulse(t *testing.T) {
	m, out, pass := slowMeter(false)
	p := &Pulse{meter: m, began: m.now()}
	wait := func() {
		for range 10 {
			pass(500 * time.Millisecond)
			p.again()
		}
	}
	wait()
	p.Training(round.Progress{Step: 1, Steps: 3, Loss: -1, Phase: "growing trees"})
	wait()
	want := []string{"training for 2.0 s", "training for 4.0 s", "33 %  step 1 of 3  growing trees",
		"33 %  step 1 of 3  growing trees", "33 %  step 1 of 3  growing trees"}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d lines in 10 s:\n%s", len(got), out)
	}
	for i := range got {
		if strings.TrimSpace(got[i]) != want[i] {
			t.Errorf("line %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// train -o jsonl prints the progress line by line, which never goes back, and at last the result
// that -o json prints.
func TestTrainLines(t *testing.T) {
	dir := t.TempDir()
	args := []string{"train", "--local", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1), "--algorithm",
		"structrf", "--set", "trees=20", "--threads", "1"}
	var want struct {
		Digest string `json:"model_digest"`
		Steps  uint64 `json:"steps"`
	}
	cmdtest.JSON(t, &want, args...)
	got := want
	got.Digest = ""
	var at uint64
	all := strings.Split(strings.TrimSpace(cmdtest.Works(t, append(args, "-o", "jsonl")...)), "\n")
	for i, text := range all {
		line := struct {
			Progress *round.Progress `json:"progress"`
			Result   any             `json:"result"`
		}{}
		if i == len(all)-1 {
			line.Result = &got
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("line %d, %s: %v", i, text, err)
		}
		if line.Progress == nil {
			continue
		}
		if line.Progress.Step < at || i == len(all)-1 {
			t.Errorf("line %d of %d is step %d, after step %d", i, len(all), line.Progress.Step, at)
		}
		at = line.Progress.Step
	}
	if diff := cmp.Diff(want, got); diff != "" || len(all) < 2 || at != want.Steps {
		t.Errorf("%d lines, the last progress is step %d of %d; %s", len(all), at, want.Steps, diff)
	}
}

// What has not changed is no new line.
func TestProgressLinesOnce(t *testing.T) {
	var out strings.Builder
	l := newProgressLines(&cli.App{Output: cli.JSONL, Data: &out})
	for range 3 {
		l.put(round.Progress{Step: 1})
	}
	l.put(round.Progress{Step: 2})
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

func TestReadingLine(t *testing.T) {
	for _, test := range []struct {
		doing    string
		p, first importer.Progress
		seconds  float64
		want     string
	}{
		{"predicting", importer.Progress{Phase: "read", Done: 4096, Of: 10000, Part: .4096}, importer.Progress{}, 2,
			" 41 %  predicting: 4,096 of 10,000 samples  2,048 samples/s  ETA 2.9 s"},
		{"evaluating", importer.Progress{Phase: "read", Done: 1200, Of: -1, Part: .75},
			importer.Progress{Done: 200, Part: .5}, 4, " 75 %  evaluating: 1,200 samples  250 samples/s  ETA 4.0 s"},
		{"reading data", importer.Progress{Phase: "check", Done: 512, Of: -1, Part: -1}, importer.Progress{Part: -1}, 1,
			"reading data (check): 512 samples  512 samples/s"},
		{"reading data", importer.Progress{Phase: "store", Done: 3, Of: 4, Part: .75}, importer.Progress{Done: 1, Part: .25},
			2, " 75 %  reading data (store): 3 of 4 shards  ETA 1.0 s"},
		{"writing", importer.Progress{Phase: "write", Done: 10, Of: 10, Part: 1}, importer.Progress{Phase: "write", Done: 10,
			Of: 10, Part: 1}, 0, "100 %  writing: 10 of 10 samples"},
	} {
		if got := readingLine(test.doing, test.p, test.first,
			time.Duration(test.seconds*float64(time.Second))); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// Rates count from the beginning of each phase.
func TestReadingPhases(t *testing.T) {
	m, out, pass := slowMeter(false)
	o := m.Reading(t.Context(), "reading data", importer.Checks{})
	pass(quiet)
	for _, phase := range []string{"check", "sort"} {
		for i := range 4 {
			o.Progress(importer.Progress{Phase: phase, Done: 1000 * i, Of: 4000, Part: float64(i) / 4})
			pass(lineEvery)
		}
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if want := " 75 %  reading data (sort): 3,000 of 4,000 samples  500 samples/s  ETA 2.0 s"; len(lines) != 8 ||
		lines[7] != want {
		t.Errorf("got %q", lines)
	}
}

// What a job waits for is said within a second or so, again when it changes, and now and
// then; what follows is shown at once.
func TestMeterWaiting(t *testing.T) {
	m, out, pass := slowMeter(false)
	job := func(waiting string) {
		j := &protocol.JobInfo{Name: "x", State: protocol.Running, Waiting: waiting,
			Progress: &round.Progress{Step: 5, Steps: 10, Loss: -1}}
		if waiting != "" {
			j.WaitingFor = protocol.WaitNoWorker
		}
		m.Job(j)
	}
	said := func(after time.Duration, want int, last string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		if len(lines) != want || want > 0 && !strings.Contains(lines[want-1], last) {
			t.Fatalf("after %v: %q, want %d lines, the last with %q", after, lines, want, last)
		}
	}
	job("no worker")
	said(0, 0, "")
	pass(time.Second)
	job("no worker")
	said(time.Second, 1, "job x is running and waits: no worker")
	for range 9 {
		pass(time.Second)
		job("no worker")
	}
	said(10*time.Second, 1, "no worker")
	pass(time.Second)
	job("no worker")
	said(11*time.Second, 2, "no worker")
	job("none with memory")
	said(11*time.Second, 3, "memory")
	pass(2 * time.Second)
	job("")
	said(13*time.Second, 4, "step 5 of 10")
}

// TestMeterObeysItself: a terminal obeys the sequences of the meter, and none in the texts that it shows.
func TestMeterObeysItself(t *testing.T) {
	var out bytes.Buffer
	m := New(&cli.App{Stderr: printable.NewWriter(&out)})
	m.terminal, m.size = true, func() (columns, lines int) { return 300, 20 }
	now := time.Unix(1, 0)
	m.now, m.start = func() time.Time { return now }, now.Add(-time.Hour)
	const escape = "\x1b[31m\u009b2J\u202e\a"
	m.waiting("job j waits for " + escape + "a\nb")
	now = now.Add(time.Hour)
	m.Live = true
	m.ShowAll("first"+escape, func(int, int) []string { return []string{"second" + escape} })
	m.warn("third" + escape)
	text := `\x1b[31m\u009b2J\u202e\x07`
	want := "\r\x1b[Kjob j waits for " + text + `a\nb` +
		"\r\x1b[Jfirst" + text + "\r\nsecond" + text + "\r\x1b[1A" +
		"\r\x1b[Jwarning: third" + text + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestTrainingLine(t *testing.T) {
	p := round.Progress{Step: 10, Steps: 100, MostSteps: 100, Samples: 640, Loss: -1}
	m := new(Meter)
	if got, want := m.trainingLine(p, round.Progress{}, 10*time.Second),
		" 10 %  step 10 of at most 100  64 samples/s  ETA at most 1m30s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Loss = .25
	if got := m.trainingLine(p, p, 0); got != " 10 %  step 10 of at most 100  K-L 0.25000" {
		t.Errorf("%q", got)
	}
	// A job on targets, in this process and on a cluster.
	m.Targets = true
	if got := m.trainingLine(p, p, 0); got != " 10 %  step 10 of at most 100  squared error 0.25000" {
		t.Errorf("%q", got)
	}
	for bounds, want := range map[*dataset.Bounds]bool{nil: false, {}: true} {
		m, _, _ := slowMeter(false)
		m.Job(&protocol.JobInfo{Job: &round.Job{Bounds: bounds}, Progress: &p})
		if m.Targets != want {
			t.Errorf("bounds %v: targets %v", bounds, m.Targets)
		}
	}
}

// how much of it is done, more often than its blocks of rows end; one that is quick says nothing.
func TestPredictProgress(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 3000, 1)
	src, err := read.Open(data, read.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, out, pass := slowMeter(false)
	o := m.Reading(t.Context(), "predicting", importer.Checks{})
	show := o.Progress
	o.Progress = func(p importer.Progress) { pass(lineEvery); show(p) }
	if err := importer.Blocks(src, 1024, o, func(*dataset.Rows, []string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if len(lines) < 3000/512 {
		t.Errorf("%d lines for 3,000 samples", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(line, " %  predicting: ") || !strings.HasSuffix(strings.Fields(line)[0], "0") &&
			len(strings.Fields(line)) < 4 {
			t.Errorf("got %q", line)
		}
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "100 %") {
		t.Errorf("at the end %q", last)
	}
	model := cmdtest.Write(t, dir, "m.coppice", "")
	cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--model-out", model}, cmdtest.Small...)...)
	for _, args := range [][]string{
		{"predict", "--model", model, "--data", data, "--out", dir + "/out.csv"}, {"evaluate", "--model", model,
			"--data", data},
	} {
		if e := cmdtest.Run(t, args...); e.Code != cli.ExitOK || bytes.Contains([]byte(e.Stderr), []byte("rows/s")) {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

package commands

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// three are the members of a cluster.
func three() []protocol.MemberEntry {
	return []protocol.MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b", HTTP: "b:1"}, {ID: "c", HTTP: "c:1"}}
}

// reports are of coordinators a, b and c: whom each hears ("-": nobody), with its problem
// after a colon, or "" of one that does not answer.
func reports(says ...string) (list []client.Report) {
	for i, text := range says {
		m := three()[i]
		r := client.Report{ID: m.ID, Address: m.HTTP, Err: errors.New("refused")}
		if leader, problem, _ := strings.Cut(text, ":"); text != "" {
			r.Err = nil
			r.Self = &protocol.Self{MemberEntry: m, Phase: phaseMember, Leader: strings.Trim(leader, "-"), Problem: problem, Voters: three()}
		}
		list = append(list, r)
	}
	return list
}

func TestVerdicts(t *testing.T) {
	starting := reports("-", "", "-")
	for i := range starting {
		if starting[i].Self != nil {
			starting[i].Self.Phase, starting[i].Self.Voters, starting[i].Self.Problem = "new", nil, "it waits for others"
		}
	}
	removed := append(reports("a", "a", "a"), client.Report{ID: "d", Address: "d:1", Self: &protocol.Self{
		MemberEntry: protocol.MemberEntry{ID: "d", HTTP: "d:1"}, Phase: phaseMember, Leader: "a", Applied: 0,
	}})
	gone := append(reports("a", "a", "a"), client.Report{Address: "d:1", Err: errors.New("refused")})
	for _, test := range []struct {
		name     string
		reports  []client.Report
		leader   string
		answered int
		says     []string // by the verdict and by the error of a command
	}{
		{"well", reports("a", "a", "a"), "a", 3, []string{"a leads, and all coordinators answer"}},
		{"one away", reports("a", "a", ""), "a", 2, []string{"a leads, and 2 of 3 coordinators answer", "c (c:1)"}},
		{"a leader that is gone is not one", reports("", "a", "-"), "", 2, []string{"no leader, though 2 of 3"}},
		{"a leader that was frozen just now", reports("", "a", "a"), "a", 2, []string{"2 coordinators of 3 name a as the leader, but a does not answer", "a (a:1)"}},
		{"an old leader beside a new one", reports("a", "b", "b"), "b", 3, []string{"b leads"}},
		{"no majority", reports("", "-", ""), "", 1, []string{"no quorum: 1 of 3", "2 are needed", "a (a:1)", "c (c:1)"}},
		{"a leader that does not know yet", reports("a", "", ""), "", 1, []string{"no quorum: 1 of 3"}},
		{"election", reports("-", "-", "-"), "", 3, []string{"no leader, though 3 of 3"}},
		{"full disks", reports("-:the disk is full", "-:the disk is full", ""), "", 2, []string{"a (a:1)", "the disk is full"}},
		{"a problem", reports("a:not connected to NATS", "a", "a"), "a", 3, []string{"not connected to NATS"}},
		{"nobody", reports("", "", ""), "", 0, []string{"no coordinator answers", "--server"}},
		{"starting", starting, "", 0, []string{"no leader yet", "it waits for others", "no answer from: b (b:1)"}},
		{"a voter that the others refuse", reports("a", "a", "-:NATS is not connected"), "a", 3, []string{"a leads, and 3 of 3 coordinators answer, but the leader does not reach c (c:1); coppice cluster members says why"}},
		{"a removed coordinator", gone, "a", 3, []string{"a leads, and all coordinators answer; no coordinator of the cluster has the address d:1: leave it out of --server"}},
		{"a nonvoter", removed, "a", 3, []string{"a leads, and all coordinators answer"}},
	} {
		o := judge(test.reports)
		if o.Leader != test.leader || o.Answered != test.answered || o.Voters != 3 {
			t.Errorf("%s: leader %q, %d of %d", test.name, o.Leader, o.Answered, o.Voters)
		}
		for _, part := range test.says {
			if !strings.Contains(o.Verdict, part) {
				t.Errorf("%s: the verdict %q lacks %q", test.name, o.Verdict, part)
			}
		}
		for _, r := range test.reports { // the error of a command names each
			if text := o.problem(); !strings.Contains(text, r.Address) {
				t.Errorf("%s: %q does not name %s", test.name, text, r.ID)
			}
		}
	}
}

// Of two or four voters more than half are a majority.
func TestEvenMajorities(t *testing.T) {
	for voters, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		if o := (&outlook{Voters: voters}); o.majority() != want {
			t.Errorf("of %d voters %d are a majority", voters, o.majority())
		}
	}
}

// A job's table row has what it waits for in place of an end that nobody knows.
func TestWaitingRow(t *testing.T) {
	now := time.Unix(1000, 0)
	j := &protocol.JobInfo{State: protocol.Running, Since: 990, Started: 990, Progress: progressAt(10, 100)}
	if text := stateOf(j); text != "running" || secondsOf(j, now).left == "-" {
		t.Errorf("a job that runs: %q, ETA %s", text, secondsOf(j, now).left)
	}
	j.WaitingFor, j.Waiting = protocol.WaitNoWorker, "no worker"
	if text := stateOf(j); text != "running, no worker" || secondsOf(j, now).left != "-" {
		t.Errorf("one that waits: %q, ETA %s", text, secondsOf(j, now).left)
	}
	for _, r := range protocol.WaitReasons() {
		if r.Short() == "" || r.Short() == string(r) {
			t.Errorf("%s is called %q", r, r.Short())
		}
	}
}

// What a job waits for is said within a second or so, again when it changes, and now and
// then; what follows is shown at once.
func TestMeterWaiting(t *testing.T) {
	m, out, pass := slowMeter(false)
	job := func(waiting string) {
		j := &protocol.JobInfo{Name: "x", State: protocol.Running, Waiting: waiting, Progress: progressAt(5, 10)}
		if waiting != "" {
			j.WaitingFor = protocol.WaitNoWorker
		}
		m.job(j)
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

func progressAt(step, of uint64) *round.Progress {
	return &round.Progress{Step: step, Steps: of, Loss: 0.5}
}

// What the coordinators said explains an error for some seconds; of a command that fails
// long after, they are asked anew.
func TestOldAnswersExplainNothing(t *testing.T) {
	now, surveys := time.Unix(1000, 0), 0
	l := &looks{survey: func() *outlook { surveys++; return &outlook{Voters: surveys} }, now: func() time.Time { return now }}
	for _, test := range []struct {
		later time.Duration
		want  int // the survey that explains
	}{{0, 1}, {protocol.ClientRead - lookAfter, 1}, {time.Minute, 2}, {time.Second, 2}} {
		now = now.Add(test.later)
		if o := l.look(); o.Voters != test.want {
			t.Errorf("%v later survey %d explains, want %d", test.later, o.Voters, test.want)
		}
	}
}

package clusters_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// A worker and the leader are killed during a job, and the job is paused. Its events name them, in the order of time
// and with the step. They are still there after all processes were killed, and this process makes the same model.
func TestEventsNameFaults(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	const steps = 2000
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, steps, "--local")...))
	c := cmdtest.Start(t, 3, 2)
	t.Setenv("COPPICE_SERVER", c.Servers())
	lost, killed := c.Workers[1], (*proc.Node)(nil)
	end := cmdtest.MidWay(t, c, "faulty", cmdtest.Train(data, steps), func() {
		cmdtest.Kill(t, lost)
		testkit.Until(t, "a commit after the loss of the worker", func() bool {
			j, err := c.Client().Jobs().Get(t.Context(), "faulty")
			return err == nil && slices.ContainsFunc(j.Events, func(e protocol.JobEvent) bool {
				return e.Kind == protocol.EventLost && j.Rounds > e.Round
			})
		})
		killed = cmdtest.KillLeader(t, c)
		cmdtest.Works(t, "job", "pause", "faulty")
		cmdtest.Works(t, "job", "resume", "faulty")
	})
	if got := cmdtest.ModelDigest(t, end); got != want {
		t.Errorf("digest %q, in this process %q", got, want)
	}
	var j protocol.JobInfo
	cmdtest.JSON(t, &j, "job", "show", "faulty")
	var kinds []protocol.EventKind
	for i, e := range j.Events {
		kinds = append(kinds, e.Kind)
		if e.Check() != nil || e.Time < float64(j.Submitted) || e.Time > float64(j.Ended)+1 || e.Step > j.Progress.Step ||
			e.Step == 0 || e.Seconds <= 0 || e.Seconds > j.Seconds || i > 0 && e.Time < j.Events[i-1].Time {
			t.Errorf("event %d: %+v", i, e)
		}
		switch e.Kind {
		case protocol.EventLost:
			if e.Worker != lost.Name || !strings.Contains(e.Text, lost.Name) {
				t.Errorf("%s was killed, not: %+v", lost.Name, e)
			}
		case protocol.EventLeader:
			if e.Coordinator == killed.Name || !strings.HasSuffix(e.Text, " after "+killed.Name) {
				t.Errorf("%s was killed, but: %+v", killed.Name, e)
			}
		}
	}
	wanted := []protocol.EventKind{protocol.EventLost, protocol.EventLeader, protocol.EventPaused, protocol.EventResumed}
	if got := slices.DeleteFunc(slices.Clone(kinds), func(k protocol.EventKind) bool {
		return !slices.Contains(wanted, k)
	}); !slices.Equal(got, wanted) {
		t.Errorf("the events are %v", kinds)
	}
	text := cmdtest.Works(t, "job", "show", "faulty")
	for _, e := range j.Events {
		if !strings.Contains(text, fmt.Sprintf("%s\n", e.Text)) {
			t.Errorf("%q is not shown in\n%s", e.Text, text)
		}
	}
	if err := c.Workers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Restart(); err != nil {
		t.Fatal(err)
	}
	cmdtest.KillAll(t, c)
	var again protocol.JobInfo
	cmdtest.JSON(t, &again, "job", "show", "faulty")
	if !reflect.DeepEqual(again.Events, j.Events) {
		t.Errorf("after all processes were killed the events are\n%+v, before\n%+v", again.Events, j.Events)
	}
	var list []protocol.JobInfo
	cmdtest.JSON(t, &list, "job", "list")
	if len(list) != 1 || list[0].Events != nil {
		t.Errorf("a list has the events: %+v", list)
	}
}

package schedule

import (
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// TestDelay: the longest delay of a round counts, is forgotten slowly, is bounded, and is not taken from rounds in
// which a task was sent twice.
func TestDelay(t *testing.T) {
	const ms = time.Millisecond
	s := newStage(t).job(1, Options{})
	s.join("w", 1)
	do := func(again bool, answers ...time.Duration) {
		t.Helper()
		began := s.now
		s.begin(reduceRound(len(answers)))
		if again {
			s.step(&TaskFailed{Worker: "w"})
			if list := s.pass(firstPause); len(runsOf(list, "w")) != 1 {
				t.Fatalf("actions %s", showAll(list))
			}
		}
		var last []Action
		for task, after := range answers {
			s.now = began.Add(after)
			last = s.step(&PartialArrived{Worker: "w", Task: task, Took: 10 * ms})
		}
		if len(actionsOf[Finish](last)) != 1 {
			t.Fatalf("actions %s", showAll(last))
		}
		s.job.End(nil, s.now)
	}
	delay := &s.job.reduce.delay
	do(false, 20*ms, 50*ms, 310*ms)
	if *delay != 300*ms {
		t.Fatalf("the delay is %v, want 300ms", *delay)
	}
	do(true, 900*ms)
	if *delay != 300*ms {
		t.Errorf("after a round with a task that was sent twice: %v", *delay)
	}
	do(false, 20*ms)
	if *delay >= 300*ms || *delay < 280*ms {
		t.Errorf("after a fast round: %v", *delay)
	}
	for range 200 {
		do(false, 20*ms)
	}
	if *delay > 15*ms {
		t.Errorf("after many fast rounds: %v", *delay)
	}
	do(false, time.Hour)
	if *delay != limitsForTest.Lost {
		t.Errorf("after an hour: %v", *delay)
	}
}

// TestPatience: a worker that does not answer costs a wait once, and no wait makes the next one longer. A task that the
// others of its round wait for is given to another worker sooner.
func TestPatience(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w1", 1)
	s.join("w2", 1)
	s.begin(reduceRound(2))
	before := s.job.reduce.patience(true)
	if before != limitsForTest.Slow || before >= s.job.reduce.patience(false) {
		t.Errorf("patience of %v and %v", before, s.job.reduce.patience(false))
	}
	answer := func(worker string, task int) []Action {
		return s.step(&PartialArrived{Worker: worker, Task: task, Took: time.Millisecond})
	}
	waits := func(task int) {
		answer("w1", 1-task)
		if list := s.pass(limitsForTest.Slow - 1); len(actionsOf[SendRun](list)) > 0 {
			t.Errorf("after almost %v the actions are %+v", limitsForTest.Slow, list)
		}
		list := s.pass(1)
		if tasks := runsOf(list, "w1"); len(tasks) != 1 || tasks[0] != uint32(task) {
			t.Errorf("w1 is sent %v", tasks)
		}
		answer("w1", task)
	}
	has := 0
	if s.job.tasks[1].leases[0].worker == "w2" {
		has = 1
	}
	waits(has)
	for range 3 {
		s.job.End(nil, s.now)
		if list := s.begin(reduceRound(2)); len(runsOf(list, "w1")) != 2 {
			t.Errorf("w1 is sent %v", runsOf(list, "w1"))
		}
		answer("w1", 0)
		if list := answer("w1", 1); len(actionsOf[Finish](list)) != 1 {
			t.Errorf("actions %s", showAll(list))
		}
	}
	if after := s.job.reduce.patience(true); after > before {
		t.Errorf("patience grew from %v to %v", before, after)
	}
}

// TestPatienceWithLargeShards: the first round of an op has as long as its shards take. After it, the longest
// recent time counts, and is forgotten slowly.
func TestPatienceWithLargeShards(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w1", 1)
	s.join("w2", 1)
	r := s.job.reduce
	for i := range r.shards {
		r.shards[i].Bytes = 4 * firstSpeed
	}
	// round returns the patience in a round, whose partials then take so long.
	round := func(took time.Duration) (whole, half time.Duration) {
		t.Helper()
		s.begin(reduceRound(2))
		whole, half = r.patience(false), r.patience(true)
		s.now = s.now.Add(took)
		for task := range 2 {
			s.step(&PartialArrived{Worker: s.job.tasks[task].leases[0].worker, Task: task, Took: took})
		}
		s.job.End(nil, s.now)
		return whole, half
	}
	want := time.Duration(len(r.shards)) * 4 * time.Second / 2 // each worker has half
	const long = 10 * time.Second
	if whole, half := round(1); whole != want || half != want {
		t.Errorf("patience of %v and %v at first, want %v", whole, half, want)
	}
	round(time.Minute) // one worker may have stood still
	if whole, half := round(0); whole != lostPaces*limitsForTest.Lost || half != slowPaces*limitsForTest.Lost {
		t.Errorf("patience of %v and %v after a round of a minute", whole, half)
	}
	round(long)
	round(long)
	if whole, half := round(0); whole != lostPaces*long || half != slowPaces*long {
		t.Errorf("patience of %v and %v after %v", whole, half, long)
	}
	if whole, _ := round(0); whole != lostPaces*(long-long/usualRounds) {
		t.Errorf("patience of %v after a short round", whole)
	}
	for range 12 * usualRounds {
		round(0)
	}
	if whole, half := round(0); whole != limitsForTest.Lost || half != limitsForTest.Slow {
		t.Errorf("patience of %v and %v after many short rounds", whole, half)
	}
}

// TestPatienceWithStandby: a worker that gets the tasks of a worker that died has as long for them as for its first
// tasks, at most firstMost, and for its own tasks no longer than usual.
func TestPatienceWithStandby(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w1", 1)
	s.join("w2", 1)
	r := s.job.reduce
	for i := range r.shards {
		r.shards[i].Bytes = 1 << 40
	}
	if r.firstPatience() != firstMost {
		t.Errorf("the first patience is %v", r.firstPatience())
	}
	s.begin(reduceRound(2))
	s.now = s.now.Add(time.Millisecond)
	other := 0 // the task of w1
	for task := range 2 {
		name := s.job.tasks[task].leases[0].worker
		if name == "w1" {
			other = task
		}
		s.step(&PartialArrived{Worker: name, Task: task, Took: time.Millisecond})
	}
	s.job.End(nil, s.now)
	s.workers.remove("w1", "left")
	s.begin(reduceRound(2))
	check := func(task int, want time.Duration) {
		t.Helper()
		l := &s.job.tasks[task].leases[0]
		if got := r.patienceWith(l, false); l.worker != "w2" || got != want {
			t.Errorf("task %d of %s: patience %v, want %v", task, l.worker, got, want)
		}
	}
	check(1-other, limitsForTest.Lost)
	check(other, firstMost)
	s.step(&PartialArrived{Worker: "w2", Task: other, Took: time.Millisecond})
	check(other, limitsForTest.Lost)
	for key := range r.answered {
		if key.worker.Name != "w2" {
			t.Errorf("the tasks of %s are kept, which left", key.worker.Name)
		}
	}
}

// TestPatienceDoubles with each copy of a task, up to a bound.
func TestPatienceDoubles(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w", 1)
	s.begin(reduceRound(1))
	for copies := range maxCopies + 2 {
		wait := 2 * limitsForTest.Lost << min(copies, maxCopies)
		if list := s.pass(wait - 1); len(actionsOf[SendRun](list)) > 0 {
			t.Errorf("copy %d was sent too early", copies)
		}
		if list := s.pass(1); len(actionsOf[SendRun](list)) != 1 {
			t.Errorf("copy %d was not sent after %v", copies, wait)
		}
	}
}

// TestPauseAfter: all workers try a task at once, then the pause doubles up to a bound.
func TestPauseAfter(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 0, 2: 0, 3: firstPause, 4: 2 * firstPause, 9: 64 * firstPause,
		10: LongestPause, 1000: LongestPause} {
		if got := pauseAfter(n, 3); got != want {
			t.Errorf("after failure %d of 3 workers: %v, want %v", n, got, want)
		}
	}
}

// TestLostBlobFailsNoJob: a job does not fail for a task that no worker could compute for long while no coordinator has
// a blob that the job needs.
func TestLostBlobFailsNoJob(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := newStage(t).job(1, Options{})
		s.join("w", 1)
		s.begin(reduceRound(1))
		fail := func() []Action {
			return s.step(&TaskFailed{Worker: "w", BlobLost: lost, Reason: "no blob"})
		}
		if list := fail(); len(actionsOf[Fail](list)) > 0 {
			t.Error("it fails at once")
		}
		s.pass(limitsForTest.GiveUp)
		if list := fail(); len(actionsOf[Fail](list)) > 0 {
			t.Errorf("it fails after %v", limitsForTest.GiveUp)
		}
		s.pass(LongestPause)
		list := fail()
		if failed := len(actionsOf[Fail](list)) > 0; failed == lost {
			t.Errorf("a blob is lost: %v; the job fails: %v", lost, failed)
		}
		if since := s.job.tasks[0].failing; since.Equal(s.now) != lost {
			t.Errorf("a blob is lost: %v; the task has failed since %v", lost, since)
		}
	}
}

// TestSumOverCompared: a sum that has a task whose results are compared is not used, after they were compared either.
func TestSumOverCompared(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w1", 1)
	s.join("w2", 1)
	s.begin(reduceRound(2), 0)
	digest := digests.Digest{1}
	sum := func(when string) {
		t.Helper()
		list := s.step(&PartialArrived{Worker: "w1", Level: 1})
		if drops := actionsOf[Drop](list); len(drops) != 1 || drops[0].Reason != Stale ||
			len(actionsOf[UsePartial](list)) > 0 {
			t.Errorf("%s: %s", when, showAll(list))
		}
	}
	sum("before")
	s.step(&PartialArrived{Worker: "w1", Digest: digest})
	if list := s.step(&PartialArrived{Worker: "w2", Digest: digest}); len(actionsOf[UseKept](list)) != 1 {
		t.Errorf("actions %s", showAll(list))
	}
	sum("after")
	if list := s.step(&PartialArrived{Worker: "w1", Task: 1}); len(actionsOf[UsePartial](list)) != 1 ||
		len(actionsOf[Finish](list)) != 1 {
		t.Errorf("another task: %s", showAll(list))
	}
}

// TestHoldIsRepeated after a while, for the shards that a worker does not say it has.
func TestHoldIsRepeated(t *testing.T) {
	s := newStage(t).job(1, Options{})
	r := Report{Name: "w", Slots: 1, Full: true}
	for _, ref := range s.shards[:7] {
		r.Shards = append(r.Shards, ref.Digest)
	}
	s.workers.Hear(r, s.now)
	if holds := actionsOf[SendHold](s.begin(reduceRound(8))); len(holds) != 1 || len(holds[0].Shards) != 8 {
		t.Errorf("holds %+v", holds)
	}
	if holds := actionsOf[SendHold](s.pass(limitsForTest.Hold - 1)); len(holds) > 0 {
		t.Errorf("too early: %+v", holds)
	}
	if holds := actionsOf[SendHold](s.pass(1)); len(holds) != 1 || len(holds[0].Shards) != 1 ||
		holds[0].Shards[0] != s.shards[7] {
		t.Errorf("holds %+v", holds)
	}
	if holds := actionsOf[SendHold](s.pass(1)); len(holds) > 0 {
		t.Errorf("again at once: %+v", holds)
	}
}

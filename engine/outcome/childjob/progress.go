package childjob

import "github.com/coppice-ldl/coppice/engine/round"

// Sum returns the progress of jobs of one kind together, without a phase, and how many of them
// are done. They may stop early: once some are done, each other job is expected to take their
// mean number of steps; before that, the greatest Steps of any job. Step is at most Steps if
// that is known.
func Sum(jobs []round.TaskProgress) (sum round.Progress, done int) {
	sum.Loss = -1
	losses, expected := 0, expectedSteps(jobs)
	for i := range jobs {
		j := &jobs[i]
		step, steps := j.Step, max(j.Step, expected)
		switch {
		case j.Done && j.Known:
			steps = step
		case j.Done:
			step = steps
		}
		sum.Step, sum.Steps, sum.Samples = sum.Step+step, sum.Steps+steps, sum.Samples+j.Samples
		if j.Done {
			done++
		}
		if j.Known && j.Loss >= 0 {
			sum.Loss = (float64(max(sum.Loss, 0)*float64(losses)) + j.Loss) / float64(losses+1)
			losses++
		}
	}
	if done == 0 {
		sum.MostSteps = mostSteps(jobs, sum.Steps)
	}
	return sum, done
}

// mostSteps returns the greatest possible number of steps of all jobs together, if jobs
// may end earlier; else 0. No job has ended.
func mostSteps(jobs []round.TaskProgress, expected uint64) uint64 {
	greatest := uint64(0)
	for i := range jobs {
		greatest = max(greatest, jobs[i].MostSteps)
	}
	if greatest == 0 {
		return 0
	}
	return max(expected, greatest*uint64(len(jobs)))
}

// expectedSteps returns the steps that a job is expected to take; 0: unknown.
func expectedSteps(jobs []round.TaskProgress) (steps uint64) {
	ended, most := uint64(0), uint64(0)
	for i := range jobs {
		j := &jobs[i]
		most = max(most, j.Steps)
		if j.Done && j.Known {
			ended++
			steps += j.Step
		}
	}
	if ended == 0 {
		return most
	}
	return steps / ended
}

package childjob

import "github.com/coppice-ldl/coppice/engine/round"

const (
	// lateFraction is how long a task that is late takes yet, as a fraction of its time so far.
	lateFraction = 0.1
	// ownSteps is the fraction of its steps after which the speed of a task counts as much as the speed of its kind.
	ownSteps = 0.1
	// leastFraction is the least fraction that kinds of unknown cost can bring about.
	leastFraction = 0.1
)

// Fraction returns which fraction of its time a round has run, by the times of its tasks. Tasks of one kind cost about the same
// for each step, and take about as many steps. Steps of different kinds are never compared. A kind without a timed step is
// expected to cost as much as the others on average, unless less than a tenth of the round would then have run: each kind begins
// early in a round, so from the first tenth on such a kind costs less. ok is false if no kind has a timed step.
func Fraction(kinds [][]round.TaskProgress) (fraction float64, ok bool) {
	steps, perStep := make([]float64, len(kinds)), make([]float64, len(kinds)) // of a task; seconds, 0 if not known
	now, mean, known, running := 0.0, 0.0, 0, 0
	for k, tasks := range kinds {
		steps[k] = float64(expectedSteps(tasks))
		if sum, done := Sum(tasks); done == 0 && len(tasks) > 0 {
			steps[k] = max(steps[k], float64(sum.MostSteps)/float64(len(tasks)))
		}
		seconds, timed, most := 0.0, 0.0, uint64(0)
		for i := range tasks {
			t := &tasks[i]
			now, most = max(now, t.Time.Last), max(most, t.Step)
			if t.Known && !t.Done {
				running++
			}
			if t.Timed() && t.Step > t.Time.From {
				seconds, timed = seconds+t.Time.Last-t.Time.Began, timed+float64(t.Step-t.Time.From)
			}
		}
		if steps[k] == 0 { // the jobs do not say how many they take
			steps[k] = float64(most)
		}
		if timed > 0 {
			perStep[k] = seconds / timed
			mean, known = mean+float64(perStep[k]*steps[k]), known+1
		}
	}
	if known == 0 {
		return 0, false
	}
	mean /= float64(known)
	lanes := float64(max(1, running)) // tasks that are computed at a time

	past, left, longest := now, 0.0, 0.0 // the time so far; seconds of computing that are left, and of one task
	unknown := 0.0                       // seconds of computing of kinds without a timed step
	for k, tasks := range kinds {
		for i := range tasks {
			t := &tasks[i]
			all, each := max(steps[k], float64(t.Step)), perStep[k]
			switch {
			case each == 0 && !t.Done:
				unknown += mean
			case t.Done && !t.Known:
				past += each * all / lanes
			case t.Done && !t.Timed():
				past += each * float64(t.Step) / lanes
			case t.Done:
			case t.Known:
				if own := float64(t.Step - min(t.Step, t.Time.From)); own > 0 {
					each = (t.Time.Last - t.Time.Began + float64(each*ownSteps*all)) / (own + float64(ownSteps*all))
				}
				spent := now - t.Time.Began
				rest := max(float64(each*(all-float64(t.Time.From)))-spent, lateFraction*spent)
				past += perStep[k] * float64(t.Time.From) / lanes
				left, longest = left+rest, max(longest, rest)
			default:
				left, longest = left+float64(each*all), max(longest, each*all)
			}
		}
	}
	rest := max(longest, left/lanes)
	return past / (past + max(rest, min(rest+unknown/lanes, past/leastFraction-past))), true
}

// Package lbfgs minimises a smooth function of many variables by the limited-memory method of
// Broyden, Fletcher, Goldfarb and Shanno (Liu and Nocedal 1989), with steps that satisfy the
// strong Wolfe conditions (Moré and Thuente 1994).
//
// It is a state machine and not a loop with a callback: the function is evaluated by a round
// on workers, and a job can be cut between any two evaluations.
//
//	m := lbfgs.New(start, lbfgs.Options{Iterations: 300})
//	for !m.Done() {
//		f, g := evaluate(m.Point())
//		m.Tell(f, g)
//	}
//	best := m.Best()
package lbfgs

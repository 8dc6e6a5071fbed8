// Package gradient has what learners share whose parameters Θ go down the gradient of a loss in
// mini-batches:
//
//	Sample     a row as functions and losses read it
//	Batches    the rows of a mini-batch, drawn by counters
//	Function   f(x; Θ) with its gradient: Linear, or one of package network
//	Optimizer  SGD with momentum, Adam
//	Stopping   early stopping by validation loss
//	Descent    the loop over these: the leader's half of a learner, but for its model
//	Kernel     the workers' half of that loop; the learner adds its Loss
//
// A learner has a trainer that embeds a Descent, a kernel that has a Kernel, a Loss, and a model.
// softmaxtest is the smallest one. LDLF adds leaf updates: rounds of its own between the steps,
// and q, which is validated and stored beside Θ.
//
// Package gradienttest holds a Function against finite differences.
//
// The rounds have the operations 210 to 212 and the variables 0xfe10 to 0xfe1f; those of the
// scaling come before.
package gradient

// Package speed measures what one core does of Coppice's work against what it could
// do, and against what other programs do of the same work in turns with it.
//
// A Case is something that is run again and again, such as the training of a forest, and
// gives a figure for each of its rows: seconds of a step, of a leaf update. A row knows the
// operations and bytes that its work needs at the least, and so its floor on a core whose
// Roof was measured in the same rounds.
package speed

// Package speed measures how long one core takes for Coppice's work, and how long other programs take for the same work
// in turns with it.
//
// A Case is something that is run again and again, such as the training of a forest, and
// gives a figure for each of its rows: seconds of a step, of a leaf update.
package speed

// Package rows is for algorithms whose models keep training rows: neighbours, and kernels
// with all rows or some landmarks.
//
// A round collects the rows as they are stored, sparse ones sparse (Collect, Join). Kept is the
// part of a trainer's state and of a model that they are. Distances are squared Euclidean
// distances between any row and the kept ones: the same bits for dense and sparse rows, any
// number of lanes, and vectors or plain code. Neighbours find the nearest kept rows by the
// same distances, but compute few of them.
package rows

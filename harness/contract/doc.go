// Package contract is the test that every algorithm passes: it holds an
// algorithms.Algorithm against its contract and that of package round. The test of an
// algorithm calls it in one line:
//
//	func TestContract(t *testing.T) { contract.Run(t, Algorithm{}) }
//
// It makes small datasets (dense, sparse, of one feature, of two labels; with labels that are a
// scale where numbers are predicted) and derives jobs
// from the table of settings: all whole numbers at their least, all in the middle between
// that and the default, and from there each word, and each number at its ends. It knows
// nothing else of the algorithm. What it checks, and cannot check, each check says.
package contract

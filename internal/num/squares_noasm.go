//go:build !amd64 || purego

package num

func squares(_, _, _ []float64) bool { return false }

func addConstant([]float64, float64) int { return 0 }

func addSquares(_, _ []float64, _ float64) int { return 0 }

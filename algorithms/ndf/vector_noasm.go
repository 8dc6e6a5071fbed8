//go:build !amd64 || purego

package ndf

func routedMassStart(_, _ []float64, _ []float32, _, _ *[sumLanes]float64) int              { return 0 }
func ratioSumsStart(_, _ []float64, _ []float32, _, _ float64, _, _ *[sumLanes]float64) int { return 0 }
func addRatiosStart(_, _, _ []float64, _ []float32, _, _ float64) int                       { return 0 }
func tanhsStart([]float32) int                                                              { return 0 }
func tanhSlopesStart(_, _ []float32, _ float32) int                                         { return 0 }

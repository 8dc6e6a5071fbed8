package registry

// MeasuredSamples are the numbers of training samples of the measurements.
var MeasuredSamples = [3]int{2_000, 50_000, 500_000}

// A Measurement is what an algorithm with its default hyperparameters reached on a dataset of
// `coppice dataset generate --kind smooth --seed 7`, on one thread.
type Measurement struct {
	Samples int     `json:"samples"`      // of training
	KL      float64 `json:"kl,omitempty"` // mean K-L on the test samples, in nats; 0 if training was stopped
	// CPUSeconds is the time of the whole command, which includes reading the file.
	CPUSeconds float64 `json:"cpu_seconds"`
}

// MeanBaselineKL is the K-L of the mean baseline on the test samples of each dataset.
var MeanBaselineKL = [len(MeasuredSamples)]float64{1.063, 1.072, 1.072}

// measured has K-L and CPU seconds by algorithm, for each of MeasuredSamples.
// docs/guides/choose-an-algorithm.md has the commands.
var measured = map[string][len(MeasuredSamples)][2]float64{
}

// Measured returns the measurements of an algorithm, one for each of MeasuredSamples. There are
// none for algorithms that predict a number.
func Measured(name string) []Measurement {
	var all []Measurement
	if of, ok := measured[name]; ok {
		for i, m := range of {
			all = append(all, Measurement{MeasuredSamples[i], m[0], m[1]})
		}
	}
	return all
}

package round

// Progress is for display only. Losses are K-L divergences in nats.
type Progress struct {
	Step  uint64 `json:"step"`
	Steps uint64 `json:"steps"` // 0 where unknown
	// MostSteps is the greatest possible number of steps, those of a refit included, if
	// training may end earlier; 0: training takes Steps.
	MostSteps uint64 `json:"most_steps,omitempty"`
	// BestStep is the step of the state with the least validation loss, BestLoss;
	// 0: none yet.
	BestStep uint64  `json:"best_step,omitempty"`
	BestLoss float64 `json:"best_loss,omitempty"`
	// Refit is the number of refit steps among Steps: training on training and
	// validation rows.
	Refit   uint64  `json:"refit_steps,omitempty"`
	Samples uint64  `json:"samples"` // rows processed so far
	Loss    float64 `json:"loss"`    // the last known training loss; negative: none yet
	// Validation is the last validation loss, of the state at step ValidatedAt; 0
	// there: none yet.
	Validation  float64 `json:"validation_loss,omitempty"`
	ValidatedAt uint64  `json:"validation_step,omitempty"`
	Phase       string  `json:"phase"` // "training", "leaf update", ...
}

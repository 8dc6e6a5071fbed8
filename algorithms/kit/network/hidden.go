package network

// Hidden returns the layers of a network with one hidden layer: dense, an activation, dense. A
// model file has its tensors as hidden.ACTIVATION, hidden.bias, output and output.bias.
func Hidden(features, hidden, outputs int, activation string, start Start) []Layer {
	units := Flat(hidden)
	var between Layer = &ReLU{Of: units}
	if activation == LogisticUnits {
		between = &Logistic{Of: units}
	}
	return []Layer{
		&Dense{Name: "hidden." + activation, Biases: "hidden.bias", From: Flat(features), Outputs: hidden, Start: start},
		between,
		&Dense{Name: "output", Biases: "output.bias", From: units, Outputs: outputs, Start: start},
	}
}

// The activations of a hidden layer.
const (
	ReLUUnits     = "relu"
	LogisticUnits = "logistic"
)

package wire

import "switchyard/internal/domain"

// ModelCost is what the calls of a model cost.
type ModelCost struct {
	Model string `json:"model"`
	domain.CostSum
}

func NewModelCost(m domain.CostShare) ModelCost { return ModelCost{m.Name, m.CostSum} }

// Cost is what a story costs.
type Cost struct {
	domain.CostSum
	Sessions int         `json:"sessions"`
	FirstMS  int64       `json:"first_ms"`
	LastMS   int64       `json:"last_ms"`
	Models   []ModelCost `json:"models"`
}

// NewCost returns nil for nil.
func NewCost(c *domain.Cost) *Cost {
	if c == nil {
		return nil
	}
	return &Cost{c.CostSum, c.Sessions, c.First.UnixMilli(), c.Last.UnixMilli(), domain.Map(c.Models, NewModelCost)}
}

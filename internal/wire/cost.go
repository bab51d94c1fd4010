package wire

import "switchyard/internal/domain"

// CostSum is what calls cost together.
type CostSum struct {
	USD    domain.Micros `json:"usd"`
	Tokens domain.Tokens `json:"tokens"`
	Calls  int64         `json:"calls"`
}

func NewCostSum(s domain.CostSum) CostSum { return CostSum{s.USD, s.Tokens, s.Calls} }

// ModelCost is what the calls of a model cost.
type ModelCost struct {
	Model string `json:"model"`
	CostSum
	Unpriced int64 `json:"unpriced"`
}

func NewModelCost(m domain.ModelCost) ModelCost {
	return ModelCost{m.Model, NewCostSum(m.CostSum), m.Unpriced}
}

// Cost is what a story costs.
type Cost struct {
	CostSum
	Unpriced int64       `json:"unpriced"`
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
	return &Cost{
		NewCostSum(c.CostSum), c.Unpriced, c.Sessions, c.First.UnixMilli(), c.Last.UnixMilli(),
		domain.Each(c.Models, NewModelCost),
	}
}

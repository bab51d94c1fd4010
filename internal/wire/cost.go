package wire

import "switchyard/internal/domain"

// CostSum is what calls cost together, and how many of them have no price.
type CostSum struct {
	domain.CostSum
	Unpriced int64 `json:"unpriced"`
}

func NewCostSum(s domain.CostSum) CostSum { return CostSum{s, s.Unpriced} }

// ModelCost is what the calls of a model cost.
type ModelCost struct {
	Model string `json:"model"`
	CostSum
}

func NewModelCost(m domain.CostShare) ModelCost { return ModelCost{m.Name, NewCostSum(m.CostSum)} }

// Cost is what a story costs.
type Cost struct {
	CostSum
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
		NewCostSum(c.CostSum), c.Sessions, c.First.UnixMilli(), c.Last.UnixMilli(), domain.Each(c.Models, NewModelCost),
	}
}

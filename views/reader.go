package views

import (
	"context"

	"switchyard/internal/domain"
)

// may reports whether the reader has a role. The reader is in the context of rendering, so that anything that they may not do is
// left out wherever it would be offered.
func may(ctx context.Context, needs domain.Role) bool { return domain.ActorOf(ctx).Role.Allows(needs) }

package views

import (
	"context"

	"switchyard/internal/domain"
)

// may reports whether the reader has at least the given role. The reader is in the context, so that every component can
// leave out controls that the reader may not use.
func may(ctx context.Context, needs domain.Role) bool { return domain.ActorOf(ctx).Role.Allows(needs) }

// Package guard is a reverse proxy that fails closed: it stands in front of an
// inference engine, refuses what the engine cannot hold, keeps tenants apart
// in what it forwards, and watches every answer as it streams.
package guard

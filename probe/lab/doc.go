// Package lab runs small proxies on loopback that behave and misbehave, each
// with the truth about it: for tests, for the demo, and for people who try out a
// policy offline. They are real servers on real sockets; what one does is one
// row of the table in behaviour.go.
//
// A lab never reaches outside: it listens on 127.0.0.0/8 and passes requests on
// to 127.0.0.0/8, whatever it is asked for.
package lab

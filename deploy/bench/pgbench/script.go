package pgbench

import "strings"

// A script works on one number a transaction, :n. The clients share the numbers out among themselves without talking: each takes
// every :clients-th, so that together they use all of First … First+Count-1, in about that order.
const number = `\set i :i + 1
\set n :first + :i * :clients + :client_id
`

// One is a script of one statement, which commits by itself.
func One(statement string) string { return number + statement + ";\n" }

// Trips is a transaction that waits for the answer to each statement, BEGIN and COMMIT included.
func Trips(statements ...string) string {
	return number + "BEGIN;\n" + strings.Join(statements, ";\n") + ";\nCOMMIT;\n"
}

// Pipelined is the same transaction sent in one go; the answers are awaited once.
func Pipelined(statements ...string) string {
	return number + "\\startpipeline\nBEGIN;\n" + strings.Join(statements, ";\n") + ";\nCOMMIT;\n\\endpipeline\n"
}

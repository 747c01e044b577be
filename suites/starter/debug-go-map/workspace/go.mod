module counter

go 1.21

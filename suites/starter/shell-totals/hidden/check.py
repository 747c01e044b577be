import csv
rows=list(csv.reader(open('totals.csv',newline='')))
assert rows==[['shop','total'],['Aachen, Markt','1'],['Bonn','5'],['Ulm','17']],rows

assert open('greeting.txt','rb').read()==b'Dear reader,\r\nGood morning and welcome.\r\nBye.\r\n'
